-- A request was accepted whose record a worker may have completed before. That key stays for the gate's
-- retention from now on. Else it could be removed before the gate has seen the outcome.
-- $1 the record's idempotency key, $2 scope of its worker, $3 the gate's retention in seconds. No rows.
-- Locks the worker's key until the end of the transaction.
UPDATE hapax.idempotency_keys
SET expires_at = greatest(expires_at, now() + make_interval(secs => $3))
WHERE key = $1 AND scope = $2 AND status = 'completed'
