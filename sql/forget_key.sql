-- The next message with this key runs again. $1 key, $2 scope, $3 tenant. No rows.
UPDATE hapax.idempotency_keys
SET status = 'forgotten', updated_at = now(),
    expires_at = greatest(expires_at, now() + interval '7 days')
WHERE key = $1 AND scope = $2 AND tenant = $3
