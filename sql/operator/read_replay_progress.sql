-- How far these replays are. $1 ids, $2 seconds that a claimed one may run at most. Rows as JSON.
SELECT to_json(r) FROM (
  SELECT id, dead_letter, outcome, detail, runs, last_error,
         coalesce(claimed_until + make_interval(secs => $2) > clock_timestamp(), false) AS claimed,
         next_try <= clock_timestamp() AS due
  FROM hapax.replays WHERE id = ANY ($1::bigint[]) ORDER BY id) r
