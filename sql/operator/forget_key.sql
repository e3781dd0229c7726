-- The next message with this key runs again. Failed runs are counted from 0, of the message that the
-- key names and of the key's dead letters. The row stays for a week at least. A request that a gate
-- accepted waits for its outcome no longer.
-- $1 key, $2 scope, $3 tenant. No rows.
WITH forgotten AS (
  UPDATE hapax.idempotency_keys
  SET status = 'forgotten', updated_at = now(),
      expires_at = CASE WHEN expires_at > now() + interval '50 years' THEN now() + interval '7 days'
                        ELSE greatest(expires_at, now() + interval '7 days') END
  WHERE key = $1 AND scope = $2 AND tenant = $3
  RETURNING group_id, topic, generation, partition, kafka_offset),
meant AS (
  SELECT * FROM forgotten
  UNION
  SELECT group_id, topic, generation, partition, kafka_offset FROM hapax.dead_letters
  WHERE key = $1 AND scope = $2 AND tenant = $3)
DELETE FROM hapax.attempts a USING meant f
WHERE a.group_id = f.group_id AND a.topic = f.topic AND a.generation = f.generation
  AND a.partition = f.partition AND a.kafka_offset = f.kafka_offset
