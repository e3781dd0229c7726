-- Takes an idempotency key, as it will stand once committed.
-- $1 key, $2 scope, $3 tenant, $4 fingerprint, $5 its rule, $6 group, $7 topic, $8 generation,
-- $9 partition, $10 offset, $11 retention in seconds.
-- One row when the key was free; none when somebody has it (read_key.sql then says who).
-- Waits for an uncommitted holder, at most lock_timeout (55P03).
INSERT INTO hapax.idempotency_keys (key, scope, tenant, status, fingerprint, fingerprint_rule,
  group_id, topic, generation, partition, kafka_offset, expires_at)
VALUES ($1, $2, $3, 'completed', $4, $5, $6, $7, $8, $9, $10, now() + make_interval(secs => $11))
ON CONFLICT (key, scope, tenant) DO NOTHING
RETURNING set_config('hapax.gate', 'queued', true)
