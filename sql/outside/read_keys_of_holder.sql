-- The keys that are `started` by a holder. The index by expiry leads to them. $1 holder. A row for each.
SELECT key, scope, tenant FROM hapax.idempotency_keys
WHERE expires_at = 'infinity' AND status = 'started' AND holder = $1
