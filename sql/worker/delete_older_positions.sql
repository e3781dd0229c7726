-- Removes what is below the starts of partitions, and what is of another log. Not of a partition that
-- another worker or an operator took meanwhile: its rows may be newer than this start.
-- $1 group, $2 topics, $3 partitions, $4 generations, $5 start offsets, $6 epochs. No rows.
DELETE FROM hapax.positions p
USING unnest($2::text[], $3::int[], $4::int[], $5::bigint[], $6::bigint[])
  AS d (topic, partition, generation, start, epoch)
WHERE p.group_id = $1 AND p.topic = d.topic COLLATE "C" AND p.partition = d.partition
  AND (p.generation <> d.generation OR p.last < d.start)
  AND d.epoch = (SELECT c.epoch FROM hapax.checkpoints c
    WHERE c.group_id = $1 AND c.topic = d.topic COLLATE "C" AND c.partition = d.partition)
