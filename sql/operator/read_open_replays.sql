-- The open replays of these dead letters. $1 ids. Rows as JSON.
SELECT to_json(r) FROM (
  SELECT id, dead_letter, who, wanted_at, edited FROM hapax.replays
  WHERE dead_letter = ANY ($1::bigint[]) AND ended_at IS NULL ORDER BY dead_letter) r
