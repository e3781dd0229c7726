-- An idempotency key in all scopes and tenants, or in the given ones; by the primary key.
-- $1 key, $2 scope or NULL, $3 tenant or NULL. At most 100 rows, as JSON; the result as text, so
-- that no JSON of a handler is parsed here. `called_by`: the worker that has it under a lease.
SELECT to_json(r) FROM (
  SELECT key, scope, tenant, status, encode(fingerprint, 'hex') AS fingerprint, fingerprint_rule,
         group_id, topic, generation, partition, kafka_offset, result::text AS result, duplicates,
         error, created_at, updated_at, expires_at,
         (SELECT h.worker FROM hapax.holders h
          WHERE h.id = k.holder AND h.until > clock_timestamp() AND k.status = 'started') AS called_by
  FROM hapax.idempotency_keys k
  WHERE key = $1 AND ($2::text IS NULL OR scope = $2) AND ($3::text IS NULL OR tenant = $3)
  ORDER BY scope, tenant LIMIT 100) r
