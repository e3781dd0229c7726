-- What is in doubt from an agreed start on; an operator's decision and its question are used up by it.
-- $1 group, $2 topics, $3 partitions, $4 offsets below which messages are in doubt.
-- Locks those rows; callers sort by topic, partition.
INSERT INTO hapax.doubts AS c (group_id, topic, partition, below)
SELECT $1, d.* FROM unnest($2::text[], $3::int[], $4::bigint[]) AS d
ON CONFLICT (group_id, topic, partition) DO UPDATE SET below = EXCLUDED.below, asked = NULL, asked_run = NULL,
  decided = NULL
