-- How far back a bounded look through the dead letters goes: index only.
-- $1 below this id, $2 how many. One row, as JSON.
SELECT to_json(r) FROM (
  SELECT count(*) AS scanned, min(id) AS last
  FROM (SELECT id FROM hapax.dead_letters WHERE id < $1 ORDER BY id DESC LIMIT $2) d) r
