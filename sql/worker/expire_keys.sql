-- One step of the removal of expired keys: looks at keys, oldest first, and removes those that may go.
-- $1 at so many keys, and at those that expired in the same microsecond as the last of them; $2 at none that
-- expired before that. $3 scopes, and of each $6 since when and $4 until when a key must have expired. $5
-- is that time for each scope without a checkpoint whose start was agreed (as read_held_scopes.sql).
-- NULL keeps these. All scopes at once, because the keys of one lie between those of others.
-- One row: how many were removed, how many were looked at, and the place to go on at (NULL: the end).
-- Keys that are held may be many, and stand before those that may go. So the limit counts what is looked at.
-- Locks only what it removes. A claim on one of these keys waits for this short transaction. SKIP LOCKED
-- leaves alone what a claim holds.
WITH due AS MATERIALIZED (
  SELECT * FROM unnest($3::text[], $6::timestamptz[], $4::timestamptz[]) AS given (scope, since, until)
  UNION ALL SELECT NULL, '-infinity', $5::timestamptz WHERE $5::timestamptz IS NOT NULL
), looked AS MATERIALIZED (
  SELECT k.ctid AS place, k.scope, k.expires_at FROM hapax.idempotency_keys k
  WHERE k.expires_at < (SELECT max(until) FROM due)
    AND k.expires_at >= greatest($2::timestamptz, (SELECT min(since) FROM due))
  ORDER BY k.expires_at FETCH FIRST $1 ROWS WITH TIES
), removed AS (
  DELETE FROM hapax.idempotency_keys
  WHERE ctid = ANY (ARRAY(
    SELECT k.ctid FROM hapax.idempotency_keys k
    WHERE k.ctid = ANY (ARRAY(
      SELECT l.place FROM looked l JOIN due d ON l.expires_at < d.until
        AND (l.scope = d.scope COLLATE "C" OR (d.scope IS NULL AND l.scope NOT IN (
          SELECT c.scope FROM hapax.checkpoints c
          WHERE c.next_offset IS NOT NULL OR c.start_as IS NOT NULL)))))
      AND k.expires_at < (SELECT max(until) FROM due)
    FOR UPDATE OF k SKIP LOCKED))
  RETURNING 1)
SELECT (SELECT count(*) FROM removed) AS removed, count(*) AS looked,
       to_json(max(expires_at) + interval '1 microsecond') #>> '{}' AS next
FROM looked
