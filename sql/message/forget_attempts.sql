-- A message that failed before is settled, so nothing waits any more. Once its key has expired, its
-- coordinates must not count as known and unfinished (I8).
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset. No rows.
DELETE FROM hapax.attempts
WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4 AND kafka_offset = $5
