-- The dead letters at or above the highest checkpoint, whose messages may still come. They were given up
-- ahead of it, or an operator has lowered it by the decision `run`. Below it, each message is looked up
-- (known_coordinates.sql).
-- $1 group, $2 topics, $3 partitions, $4 generations, $5 first offsets. Few rows, but after `run`.
-- By OFFSET 0, each partition's letters are a range of the index, independent of the statistics.
SELECT c.topic, c.partition, l.kafka_offset
FROM unnest($2::text[], $3::int[], $4::int[], $5::bigint[])
  AS d (topic, partition, generation, first_offset)
JOIN hapax.checkpoints c
  ON c.group_id = $1 AND c.topic = d.topic COLLATE "C" AND c.partition = d.partition
CROSS JOIN LATERAL (
  SELECT kafka_offset FROM hapax.dead_letters
  WHERE group_id = $1 AND topic = c.topic AND generation = d.generation AND partition = c.partition
    AND kafka_offset >= greatest(d.first_offset, c.highest)
  OFFSET 0) l
