-- Removes expired keys, oldest first. $1 at most so many. No rows; says how many it removed.
-- Locks only what it removes: a claim on one of these keys waits for this short transaction, and
-- SKIP LOCKED leaves alone what a claim holds.
DELETE FROM hapax.idempotency_keys
WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM hapax.idempotency_keys WHERE expires_at < now()
  ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))
