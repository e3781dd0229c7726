-- Completes an answered key in the transaction that books its answer; arm.sql comes before.
-- $1 key, $2 scope, $3 tenant, $4 token, $5 retention in seconds, $6 group, $7 topic, $8 partition.
-- One row with the partition's epoch, as claim.sql; none if another took the key over or booked it.
-- Locks the row until the end of the transaction.
UPDATE hapax.idempotency_keys
SET status = 'completed', updated_at = now(), expires_at = now() + make_interval(secs => $5),
    holder = NULL, answer = NULL
WHERE key = $1 AND scope = $2 AND tenant = $3 AND token = $4 AND status = 'answered'
RETURNING set_config('hapax.gate', 'queued', true),
  (SELECT epoch FROM hapax.epochs e WHERE e.group_id = $6 AND e.topic = $7 AND e.partition = $8)
    AS epoch
