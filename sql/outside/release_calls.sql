-- Gives back keys that the holder's process has not in hand any more. Its take is in doubt, or what came
-- of the call could not be kept. Changes nothing if the take is not there any more: the same
-- holder may have taken the key again since this was sent.
-- Arrays: $1 keys, $2 scopes, $3 tenants, $4 tokens, $5 whether it surely has not called. No rows.
-- Locks the rows until the end of the transaction.
UPDATE hapax.idempotency_keys k
SET holder = NULL, alone = false, updated_at = now(), calls = k.calls - w.uncalled::int
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::boolean[])
  AS w(key, scope, tenant, token, uncalled)
WHERE k.key = w.key COLLATE "C" AND k.scope = w.scope COLLATE "C" AND k.tenant = w.tenant COLLATE "C"
  AND k.token = w.token AND k.status = 'started' AND k.holder IS NOT NULL
