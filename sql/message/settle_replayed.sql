-- A replay settles its offset, on a route whose key is the position: the decision `run` must not run
-- its message beside it. share_partition.sql comes before. Not below the checkpoint, as no checkpoint
-- would remove the row.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset. No rows.
INSERT INTO hapax.positions (group_id, topic, partition, generation, last)
SELECT c.group_id, c.topic, c.partition, c.generation, $5::bigint FROM hapax.checkpoints c
WHERE c.group_id = $1 AND c.topic = $2 AND c.partition = $4::int AND c.generation = $3::int
  AND c.next_offset <= $5::bigint
ON CONFLICT DO NOTHING
