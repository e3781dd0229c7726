-- The last record below each checkpoint, in the transaction that has just written the checkpoints.
-- $1 group, $2 topics, $3 partitions, $4 records as text. Locks nothing that is not locked already.
UPDATE hapax.checkpoints c
SET last_record = d.record
FROM unnest($2::text[], $3::int[], $4::text[]) AS d (topic, partition, record)
WHERE c.group_id = $1 AND c.topic = d.topic COLLATE "C" AND c.partition = d.partition
