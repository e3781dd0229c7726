-- Opens the seal of the claiming transaction (as arm.sql) and takes an idempotency key, with the
-- row that it will have once committed. It is one statement, because each one costs a twentieth of
-- a message's time.
-- $1 key, $2 scope, $3 tenant, $4 fingerprint, $5 its rule, $6 group, $7 topic, $8 generation,
-- $9 partition, $10 offset, $11 retention in seconds, $12 nonce, $13 lock_timeout of this statement
-- and, if the key was free, $14 of the transaction behind it.
-- One row when the key was free; none if another one has it (read_key.sql then names it).
-- Beside it the partition's epoch: if another worker or an operator took it, the key is not ours.
-- Waits for an uncommitted holder, at most $13 (55P03).
INSERT INTO hapax.idempotency_keys (key, scope, tenant, status, fingerprint, fingerprint_rule,
  group_id, topic, generation, partition, kafka_offset, expires_at)
SELECT $1::text, $2::text, $3::text, 'completed', $4::bytea, $5::text, $6::text, $7::text, $8::int,
  $9::int, $10::bigint, now() + make_interval(secs => $11)
WHERE set_config('hapax.claim', $12, true) = $12 AND set_config('hapax.gate', 'arm', true) = 'arm'
  AND set_config('lock_timeout', $13, true) IS NOT NULL
ON CONFLICT (key, scope, tenant) DO NOTHING
RETURNING set_config('hapax.gate', 'queued', true), set_config('lock_timeout', $14, true),
  (SELECT epoch FROM hapax.epochs e WHERE e.group_id = $6 AND e.topic = $7 AND e.partition = $9)
    AS epoch
