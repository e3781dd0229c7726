-- The holder calls no more, and the message comes again later.
-- $1 key, $2 scope, $3 tenant, $4 token, $5 whether it surely has not called. No rows. The second
-- time changes nothing.
UPDATE hapax.idempotency_keys
SET holder = NULL, alone = false, updated_at = now(), calls = calls - $5::boolean::int
WHERE key = $1 AND scope = $2 AND tenant = $3 AND token = $4 AND status = 'started'
  AND holder IS NOT NULL
