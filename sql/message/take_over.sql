-- Claims a key whose operation took no effect (failed) or may run again on purpose (forgotten).
-- $1 to $11 as claim.sql; the holder as it was read: $12 status, $13 group, $14 topic, $15 generation,
-- $16 partition, $17 offset. One row when taken, with the partition's epoch, as claim.sql; none when
-- another worker was faster, which may have given up on this very message.
-- Locks the row until the end of the transaction.
UPDATE hapax.idempotency_keys
SET status = 'completed', fingerprint = $4, fingerprint_rule = $5, group_id = $6, topic = $7,
    generation = $8, partition = $9, kafka_offset = $10, result = NULL, error = NULL,
    updated_at = now(), expires_at = now() + make_interval(secs => $11)
WHERE key = $1 AND scope = $2 AND tenant = $3 AND status IN ('failed', 'forgotten')
  AND status = $12 AND group_id = $13 AND topic = $14 AND generation = $15 AND partition = $16
  AND kafka_offset = $17
RETURNING set_config('hapax.gate', 'queued', true),
  (SELECT epoch FROM hapax.epochs e WHERE e.group_id = $6 AND e.topic = $7 AND e.partition = $9)
    AS epoch
