-- Removes what is of another log, at the first start of partitions in theirs. No start reads it. Not of a
-- partition that another worker or an operator took meanwhile.
-- $1 group, $2 topics, $3 partitions, $4 generations, $5 start offsets, $6 epochs. No rows.
-- Reads all entries of the other logs. If that takes too long, the next try is no first start any more.
WITH first AS MATERIALIZED (
  SELECT d.topic, d.partition, d.generation
  FROM unnest($2::text[], $3::int[], $4::int[], $5::bigint[], $6::bigint[])
    AS d (topic, partition, generation, start, epoch)
  JOIN hapax.checkpoints c ON c.group_id = $1 AND c.topic = d.topic COLLATE "C"
    AND c.partition = d.partition AND c.epoch = d.epoch AND c.started_runs <= 1
  WHERE EXISTS (SELECT FROM hapax.position_changes j
    WHERE j.group_id = $1 AND j.topic = d.topic COLLATE "C" AND j.partition = d.partition
      AND j.generation = d.generation AND j.to_offset = d.start AND j.cause = 'first_start'))
DELETE FROM hapax.positions p USING first d
WHERE p.group_id = $1 AND p.topic = d.topic COLLATE "C" AND p.partition = d.partition
  AND p.generation <> d.generation
