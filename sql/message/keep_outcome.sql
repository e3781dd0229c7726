-- A request was accepted whose record a worker may have met before.
-- If the worker completed it, its key stays for the gate's retention from now on. Else it could be
-- removed before the gate has seen the outcome.
-- If the worker gave it up, that is no outcome of this acceptance, because the record will take the key
-- over. The time -infinity marks it, because PostgreSQL's clock may have gone back.
-- $1 the record's idempotency key, $2 scope of its worker, $3 the gate's retention in seconds. No rows.
-- Locks the worker's key until the end of the transaction.
UPDATE hapax.idempotency_keys
SET expires_at = CASE status WHEN 'completed' THEN greatest(expires_at, now() + make_interval(secs => $3))
                             ELSE expires_at END,
    updated_at = CASE status WHEN 'failed' THEN '-infinity' ELSE updated_at END
WHERE key = $1 AND scope = $2 AND status IN ('completed', 'failed')
