-- Removes expired keys of one scope, oldest first. $1 at most so many, $2 none that expired before
-- that, $3 none that expires at or after that. $4 the scope; NULL: each scope without a
-- checkpoint whose start was agreed (as read_held_scopes.sql).
-- One row: how many, and when the last of them had expired (NULL: none).
-- Locks only what it removes: a claim on one of these keys waits for this short transaction, and
-- SKIP LOCKED leaves alone what a claim holds.
WITH removed AS (
  DELETE FROM hapax.idempotency_keys
  WHERE ctid = ANY (ARRAY(
    SELECT k.ctid FROM hapax.idempotency_keys k
    WHERE k.expires_at < $3::timestamptz AND k.expires_at >= $2::timestamptz
      AND (k.scope = $4::text COLLATE "C" OR ($4::text IS NULL AND NOT EXISTS (
        SELECT FROM hapax.checkpoints c
        WHERE c.scope = k.scope AND (c.next_offset IS NOT NULL OR c.start_as IS NOT NULL))))
    ORDER BY k.expires_at LIMIT $1 FOR UPDATE OF k SKIP LOCKED))
  RETURNING expires_at)
SELECT count(*), max(expires_at)::text AS until FROM removed
