-- Claims a key whose operation took no effect (failed) or may run again on purpose (forgotten).
-- Parameters as claim.sql. One row when taken; none when somebody was faster.
-- Locks the row until the end of the transaction.
UPDATE hapax.idempotency_keys
SET status = 'completed', fingerprint = $4, fingerprint_rule = $5, group_id = $6, topic = $7,
    generation = $8, partition = $9, kafka_offset = $10, result = NULL, error = NULL,
    updated_at = now(), expires_at = now() + make_interval(secs => $11)
WHERE key = $1 AND scope = $2 AND tenant = $3 AND status IN ('failed', 'forgotten')
RETURNING set_config('hapax.gate', 'queued', true)
