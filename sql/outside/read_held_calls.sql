-- Which keys are called now, by a holder with a lease. $1 keys, $2 scopes, $3 tenants (arrays). $4 the
-- holder that asks. A row for each of these; n counts the keys from 1. `is_own`: by the holder that asks.
SELECT w.n, h.id = $4::bigint AS is_own FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w(key, scope, tenant, n)
JOIN hapax.idempotency_keys k ON k.key = w.key COLLATE "C" AND k.scope = w.scope COLLATE "C"
  AND k.tenant = w.tenant COLLATE "C"
JOIN hapax.holders h ON h.id = k.holder AND h.until > clock_timestamp()
WHERE k.status = 'started'
