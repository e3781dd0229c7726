-- How many replays of a group's dead letters have not ended, counting at most $2; by replays_open.
-- $1 group. One row.
SELECT count(*) FROM (
  SELECT FROM hapax.replays r JOIN hapax.dead_letters d ON d.id = r.dead_letter
  WHERE r.ended_at IS NULL AND d.group_id = $1 LIMIT $2) r
