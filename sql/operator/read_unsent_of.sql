-- The records that a message has published and that are not sent yet. Reads all of the group's rows.
-- $1 group, $2 source topic, $3 generation, $4 partition, $5 offset, $6 limit. Rows as JSON.
SELECT to_json(r) FROM (
  SELECT id, topic, idempotency_key, created_at FROM hapax.outbox
  WHERE group_id = $1 AND source_topic = $2 AND source_generation = $3 AND source_partition = $4
    AND source_offset = $5
  ORDER BY id LIMIT $6) r
