-- Takes the keys of a batch, as claim.sql takes one. Callers sort by key and tenant bytewise, or two
-- batches deadlock; no key twice.
-- $1 keys, $2 scope, $3 tenants, $4 fingerprints, $5 their rule, $6 group, $7 topic, $8 generations,
-- $9 partitions, $10 offsets, $11 retention in seconds, $12 epochs of the partitions (0: no worker has it).
-- One row for each key that was free, in no promised order. None for a partition that another
-- worker or an operator took.
INSERT INTO hapax.idempotency_keys (key, scope, tenant, status, fingerprint, fingerprint_rule,
  group_id, topic, generation, partition, kafka_offset, expires_at)
SELECT d.key, $2, d.tenant, 'completed', d.fingerprint, $5, $6, $7, d.generation, d.partition,
  d.kafka_offset, now() + make_interval(secs => $11)
FROM unnest($1::text[], $3::text[], $4::bytea[], $8::int[], $9::int[], $10::bigint[], $12::bigint[])
  AS d (key, tenant, fingerprint, generation, partition, kafka_offset, epoch)
-- A hash of what the partitions have: one look for each message took a tenth of the statement's time.
WHERE d.epoch = 0 OR (d.partition, d.epoch) IN (SELECT e.partition, e.epoch FROM hapax.epochs e
  WHERE e.group_id = $6 AND e.topic = $7 AND e.partition = ANY ($9::int[]))
ON CONFLICT (key, scope, tenant) DO NOTHING
RETURNING set_config('hapax.gate', 'queued', true), partition, kafka_offset
