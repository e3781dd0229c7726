-- Gives a message up whose position is claimed in this transaction: a replay needs its key. If it has
-- failed before, no try is to come (may_have_run_since.sql).
-- $1 key, $2 scope, $3 tenant, $4 fingerprint, $5 its rule, $6 group, $7 topic, $8 generation,
-- $9 partition, $10 offset, $11 retention in seconds, $12 error. No rows.
-- Waits for an uncommitted holder, at most lock_timeout (55P03).
WITH given_up AS (
  UPDATE hapax.attempts SET next_try = last_at - interval '1 s'
  WHERE group_id = $6 AND topic = $7 AND generation = $8::int AND partition = $9::int
    AND kafka_offset = $10::bigint AND count > 0)
INSERT INTO hapax.idempotency_keys (key, scope, tenant, status, fingerprint, fingerprint_rule,
  group_id, topic, generation, partition, kafka_offset, expires_at, error)
VALUES ($1, $2, $3, 'failed', $4::bytea, $5, $6, $7, $8::int, $9::int, $10::bigint,
  now() + make_interval(secs => $11), $12)
ON CONFLICT (key, scope, tenant) DO NOTHING
