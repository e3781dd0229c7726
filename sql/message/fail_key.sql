-- Turns the claim of this transaction into a failure.
-- $1 key, $2 scope, $3 tenant, $4 error. No rows.
UPDATE hapax.idempotency_keys SET status = 'failed', error = $4, updated_at = now()
WHERE key = $1 AND scope = $2 AND tenant = $3
