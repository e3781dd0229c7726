-- All dirty checkpoints of a worker at once. Each is written only if this worker still owns the
-- partition. PostgreSQL must have lost no tail meanwhile, and the row must have the value that this
-- worker wrote last.
-- $1 group, $2 incarnations (each as the partition's start found it), $3 topics, $4 partitions,
-- $5 epochs, $6 last written, $7 next offsets.
-- One row each that was written. Locks those rows; callers sort by topic, partition.
UPDATE hapax.checkpoints c
SET next_offset = d.next_offset, highest = greatest(c.highest, d.next_offset), started_runs = 0,
    updated_at = now()
FROM unnest($2::uuid[], $3::text[], $4::int[], $5::bigint[], $6::bigint[], $7::bigint[])
  AS d (incarnation, topic, partition, epoch, last, next_offset)
WHERE c.group_id = $1 AND c.topic = d.topic COLLATE "C" AND c.partition = d.partition
  AND c.epoch = d.epoch AND c.next_offset = d.last
  AND d.incarnation = (SELECT substr(encode(sha256(convert_to(concat(id, extract(epoch FROM
                       pg_postmaster_start_time())), 'UTF8')), 'hex'), 1, 32)::uuid
                       FROM hapax.incarnation)
RETURNING c.topic, c.partition
