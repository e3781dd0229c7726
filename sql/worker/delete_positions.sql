-- Removes what the checkpoints have passed: a start does not ask for it any more.
-- $1 group, $2 topics, $3 partitions, $4 the checkpoints before, below which nothing is left,
-- $5 the checkpoints. No rows.
DELETE FROM hapax.positions p
USING unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[])
  AS d (topic, partition, before, next_offset)
WHERE p.group_id = $1 AND p.topic = d.topic COLLATE "C" AND p.partition = d.partition
  AND p.last >= d.before AND p.last < d.next_offset
