-- Cautious mode: the message ran, and the process lives.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset. No rows.
WITH never_failed AS (
  DELETE FROM hapax.attempts
  WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4 AND kafka_offset = $5
    AND count = 0)
UPDATE hapax.attempts SET crashes = 0
WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4 AND kafka_offset = $5
  AND count > 0
