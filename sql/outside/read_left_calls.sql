-- The tokens of keys that a holder has. Arrays: $1 keys, $2 scopes, $3 tenants, $4 holders. A row for each
-- that is held; n counts from 1.
SELECT w.n, k.token
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY
  AS w(key, scope, tenant, holder, n)
JOIN hapax.idempotency_keys k ON k.key = w.key COLLATE "C" AND k.scope = w.scope COLLATE "C"
  AND k.tenant = w.tenant COLLATE "C" AND k.holder = w.holder
WHERE k.status = 'started'
