-- The same as count_open_dead_letters.sql on schema 4, which ends none (by the unique index, group
-- first).
-- $1 group. A row for each reason, as JSON.
SELECT to_json(r) FROM (
  SELECT reason, count(*) AS count
  FROM (SELECT reason FROM hapax.dead_letters WHERE group_id = $1 LIMIT $2) d
  GROUP BY reason ORDER BY count(*) DESC, reason) r
