-- Locks an operation before an operator decides about it. $1 key, $2 scope, $3 tenant. One row, or none.
-- A statement that waits for the lock does not see the dead letter that came meanwhile. So the next
-- statement reads.
SELECT FROM hapax.idempotency_keys WHERE key = $1 AND scope = $2 AND tenant = $3 FOR UPDATE
