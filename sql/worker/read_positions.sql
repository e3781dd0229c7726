-- The offsets at or above the starts of partitions that are settled already.
-- $1 group, $2 topics, $3 partitions, $4 generations, $5 first offsets. Bounded by how far the
-- workers that had them were ahead of their checkpoints.
SELECT p.topic, p.partition, o.settled
FROM unnest($2::text[], $3::int[], $4::int[], $5::bigint[])
  AS d (topic, partition, generation, first_offset)
JOIN hapax.positions p
  ON p.group_id = $1 AND p.topic = d.topic COLLATE "C" AND p.partition = d.partition
 AND p.generation = d.generation AND p.last >= d.first_offset,
LATERAL (SELECT p.last AS settled UNION ALL SELECT p.last - unnest(p.earlier)) o
WHERE o.settled >= d.first_offset
