-- Checkpoint rows as they are before an operator's decision.
-- $1 group, $2 topic, $3 partition or NULL (all). Rows as JSON, by partition; locks them.
SELECT to_json(c) FROM hapax.checkpoints c
WHERE group_id = $1 AND topic = $2 AND ($3::int IS NULL OR partition = $3)
ORDER BY partition FOR UPDATE
