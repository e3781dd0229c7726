-- The replays of a dead letter, oldest first. $1 its id. At most 100 rows, as JSON.
SELECT to_json(r) FROM (
  SELECT id, wanted_at, who, why, edited, runs, last_error, ended_at, outcome, detail
  FROM hapax.replays WHERE dead_letter = $1 ORDER BY id LIMIT 100) r
