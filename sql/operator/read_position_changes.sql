-- The newest jumps of a topic's positions. $1 group, $2 topic, $3 partition or NULL (all), $4 limit.
-- Rows as JSON, newest first.
SELECT to_json(r) FROM (
  SELECT id, at, partition, generation, from_offset, to_offset, cause, who, why
  FROM hapax.position_changes
  WHERE group_id = $1 AND topic = $2 AND ($3::int IS NULL OR partition = $3)
  ORDER BY id DESC LIMIT $4) r
