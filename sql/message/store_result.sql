-- Stores the handler's result with the claimed key.
-- $1 key, $2 scope, $3 tenant, $4 result. No rows.
UPDATE hapax.idempotency_keys SET result = $4, updated_at = now()
WHERE key = $1 AND scope = $2 AND tenant = $3
