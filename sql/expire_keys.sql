-- Removes expired keys, oldest first. $1 at most so many. No rows; says how many it removed.
-- Not of what was settled ahead of its partition's checkpoint: that comes again when the partition
-- starts again.
-- Locks only what it removes: a claim on one of these keys waits for this short transaction, and
-- SKIP LOCKED leaves alone what a claim holds.
DELETE FROM hapax.idempotency_keys
WHERE ctid = ANY (ARRAY(
  SELECT k.ctid FROM hapax.idempotency_keys k
  WHERE k.expires_at < now() AND NOT EXISTS (
    SELECT FROM hapax.checkpoints c
    WHERE c.group_id = k.group_id AND c.topic = k.topic AND c.partition = k.partition
      AND c.generation = k.generation AND c.next_offset <= k.kafka_offset)
  ORDER BY k.expires_at LIMIT $1 FOR UPDATE OF k SKIP LOCKED))
