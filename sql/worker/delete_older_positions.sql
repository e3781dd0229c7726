-- Removes what is below the starts of partitions, and what is of another log.
-- $1 group, $2 topics, $3 partitions, $4 generations, $5 start offsets. No rows.
DELETE FROM hapax.positions p
USING unnest($2::text[], $3::int[], $4::int[], $5::bigint[])
  AS d (topic, partition, generation, start)
WHERE p.group_id = $1 AND p.topic = d.topic COLLATE "C" AND p.partition = d.partition
  AND (p.generation <> d.generation OR p.last < d.start)
