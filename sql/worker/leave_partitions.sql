-- Clean leaves: nothing of these partitions is running any more, and what was settled is there still
-- (else another owner may have the same epoch).
-- $1 group, $2 incarnations (each as the partition's start found it), $3 topics, $4 partitions,
-- $5 epochs, $6 highest offsets settled out of order plus 1. Locks those rows; callers sort by topic,
-- partition.
UPDATE hapax.checkpoints c
SET owner = NULL, started_runs = 0, highest_settled = d.highest_settled, updated_at = now()
FROM unnest($2::uuid[], $3::text[], $4::int[], $5::bigint[], $6::bigint[])
  AS d (incarnation, topic, partition, epoch, highest_settled)
WHERE c.group_id = $1 AND c.topic = d.topic COLLATE "C" AND c.partition = d.partition
  AND c.epoch = d.epoch
  AND d.incarnation = (SELECT substr(encode(sha256(convert_to(concat(id, extract(epoch FROM
                       pg_postmaster_start_time())), 'UTF8')), 'hex'), 1, 32)::uuid
                       FROM hapax.incarnation)
