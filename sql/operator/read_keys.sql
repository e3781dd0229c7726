-- An idempotency key in all scopes and tenants, or in the given ones; by the primary key.
-- $1 key, $2 scope or NULL, $3 tenant or NULL. At most 100 rows, as JSON; the result as text, so
-- that no JSON of a handler is parsed here.
SELECT to_json(r) FROM (
  SELECT key, scope, tenant, status, encode(fingerprint, 'hex') AS fingerprint, fingerprint_rule,
         group_id, topic, generation, partition, kafka_offset, result::text AS result, duplicates,
         error, created_at, updated_at, expires_at
  FROM hapax.idempotency_keys
  WHERE key = $1 AND ($2::text IS NULL OR scope = $2) AND ($3::text IS NULL OR tenant = $3)
  ORDER BY scope, tenant LIMIT 100) r
