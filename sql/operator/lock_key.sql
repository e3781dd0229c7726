-- An idempotency key before an operator changes it. $1 key, $2 scope, $3 tenant.
-- One row as JSON, or none; locks it. The result as text, so that no JSON of a handler is parsed.
SELECT to_json(r) FROM (
  SELECT key, scope, tenant, status, encode(fingerprint, 'hex') AS fingerprint, fingerprint_rule,
         group_id, topic, generation, partition, kafka_offset, result::text AS result, error,
         created_at, updated_at, expires_at
  FROM hapax.idempotency_keys WHERE key = $1 AND scope = $2 AND tenant = $3 FOR UPDATE) r
