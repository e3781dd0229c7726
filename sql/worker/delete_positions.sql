-- Removes what the checkpoints have passed: a start does not ask for it any more.
-- $1 group, $2 topics, $3 partitions, $4 the checkpoints before, below which nothing is left,
-- $5 the checkpoints. No rows.
-- The log and both offsets bound the scan of the index. Below lie the entries of all rows that were removed
-- since PostgreSQL's oldest snapshot.
WITH written AS MATERIALIZED (
  SELECT d.topic, d.partition, d.before, d.next_offset, (
    SELECT c.generation FROM hapax.checkpoints c
    WHERE c.group_id = $1 AND c.topic = d.topic COLLATE "C" AND c.partition = d.partition) AS generation
  FROM unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[])
    AS d (topic, partition, before, next_offset))
DELETE FROM hapax.positions p USING written d
WHERE p.group_id = $1 AND p.topic = d.topic COLLATE "C" AND p.partition = d.partition
  AND p.generation = d.generation AND p.last >= d.before AND p.last < d.next_offset
