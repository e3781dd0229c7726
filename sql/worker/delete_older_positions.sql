-- Removes what is below the starts of partitions that do not start at their checkpoints. The checkpoints
-- have removed the rest. Not of a partition that another worker or an operator took meanwhile: its rows
-- may be newer than this start.
-- $1 group, $2 topics, $3 partitions, $4 generations, $5 start offsets, $6 epochs. No rows.
-- The jump that led to the start bounds the scan of the index by the offset before it, as in
-- delete_positions.sql.
WITH jumped AS MATERIALIZED (
  SELECT d.topic, d.partition, d.generation, d.start, (
    SELECT j.from_offset FROM hapax.position_changes j
    WHERE j.group_id = $1 AND j.topic = d.topic COLLATE "C" AND j.partition = d.partition
      AND j.generation = d.generation AND j.to_offset = d.start AND j.from_offset < d.start
    ORDER BY j.id DESC LIMIT 1) AS before
  FROM unnest($2::text[], $3::int[], $4::int[], $5::bigint[], $6::bigint[])
    AS d (topic, partition, generation, start, epoch)
  WHERE d.epoch = (SELECT c.epoch FROM hapax.checkpoints c
    WHERE c.group_id = $1 AND c.topic = d.topic COLLATE "C" AND c.partition = d.partition))
DELETE FROM hapax.positions p USING jumped d
WHERE p.group_id = $1 AND p.topic = d.topic COLLATE "C" AND p.partition = d.partition
  AND p.generation = d.generation AND p.last >= d.before AND p.last < d.start
