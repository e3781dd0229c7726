-- Counts a duplicate on the key's row, for a handler that wants to see duplicates: a written row is
-- what arms the seal. $1 key, $2 scope, $3 tenant. One row: the stored result; none: not completed.
-- Locks the row until the end of the transaction.
UPDATE hapax.idempotency_keys SET duplicates = duplicates + 1
WHERE key = $1 AND scope = $2 AND tenant = $3 AND status = 'completed'
RETURNING set_config('hapax.gate', 'queued', true), result
