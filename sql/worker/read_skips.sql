-- The offsets of partitions that an operator has decided to skip and that may still come.
-- $1 group, $2 topics, $3 partitions, $4 generations, $5 first offsets. Few rows.
SELECT DISTINCT h.topic, h.partition, h.kafka_offset, h.reason, h.ended_by, h.why
FROM unnest($2::text[], $3::int[], $4::int[], $5::bigint[])
  AS d (topic, partition, generation, first_offset)
JOIN hapax.halts h
  ON h.group_id = $1 AND h.topic = d.topic COLLATE "C" AND h.partition = d.partition
 AND h.generation = d.generation AND h.kafka_offset >= d.first_offset
WHERE h.decision = 'skip'
