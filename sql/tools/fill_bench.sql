-- Keys of `hapax bench` that were completed before: 32 digits each, spread over the whole index.
-- $1 scope (also of the group), $2 the first number, $3 one more than the last. No rows.
INSERT INTO hapax.idempotency_keys (key, scope, tenant, status, fingerprint, fingerprint_rule,
  group_id, topic, generation, partition, kafka_offset, expires_at)
SELECT md5(n::text), $1, '', 'completed', sha256(n::text::bytea), 'payload', $1, 'old', 1, 0, n,
       now() + interval '7 days'
FROM generate_series($2::bigint, $3::bigint - 1) AS n
