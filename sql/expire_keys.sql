-- Removes expired keys, oldest first. $1 at most so many, $2 none that expired before that.
-- One row: how many, and when the last of them had expired (NULL: none).
-- Not of what was settled ahead of its partition's checkpoint: that comes again when the partition
-- starts again. $2 spares a round from looking at those in each of its batches.
-- Locks only what it removes: a claim on one of these keys waits for this short transaction, and
-- SKIP LOCKED leaves alone what a claim holds.
WITH removed AS (
  DELETE FROM hapax.idempotency_keys
  WHERE ctid = ANY (ARRAY(
    SELECT k.ctid FROM hapax.idempotency_keys k
    WHERE k.expires_at < now() AND k.expires_at >= $2::timestamptz AND NOT EXISTS (
      SELECT FROM hapax.checkpoints c
      WHERE c.group_id = k.group_id AND c.topic = k.topic AND c.partition = k.partition
        AND c.generation = k.generation AND c.next_offset <= k.kafka_offset)
    ORDER BY k.expires_at LIMIT $1 FOR UPDATE OF k SKIP LOCKED))
  RETURNING expires_at)
SELECT count(*), max(expires_at)::text AS until FROM removed
