-- A group's open dead letters by reason, counting at most $2 of them; by dead_letters_open.
-- $1 group. A row for each reason, as JSON.
SELECT to_json(r) FROM (
  SELECT reason, count(*) AS count
  FROM (SELECT reason FROM hapax.dead_letters
        WHERE group_id = $1 AND ended_at IS NULL LIMIT $2) d
  GROUP BY reason ORDER BY count(*) DESC, reason) r
