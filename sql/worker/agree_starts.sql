-- Writes the agreed starts of partitions before anything is dispatched, and counts the runs.
-- $1 group, $2 topics, $3 partitions, $4 epochs, $5 start offsets, $6 key specs, $7 scopes.
-- $8 cluster id, $9 topic ids ('': the client cannot tell), $10 generations, $11 offsets that
-- `highest` must reach, $12 whether it is at the log's end.
-- No message can have ended the runs before a start at the log's end, so they do not count.
-- One row for each that has not been taken meanwhile.
-- Locks those rows; callers sort by topic, partition.
UPDATE hapax.checkpoints c
SET next_offset = d.start, highest = greatest(c.highest, d.start, d.guard), key_spec = d.key_spec,
    scope = d.scope, cluster_id = $8, topic_id = coalesce(nullif(d.topic_id, ''), c.topic_id),
    generation = d.generation, start_as = NULL, highest_settled = NULL,
    started_runs = CASE WHEN d.idle THEN 1 ELSE c.started_runs + 1 END, updated_at = now()
FROM unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $9::text[],
            $10::int[], $11::bigint[], $12::boolean[])
  AS d (topic, partition, epoch, start, key_spec, scope, topic_id, generation, guard, idle)
WHERE c.group_id = $1 AND c.topic = d.topic COLLATE "C" AND c.partition = d.partition
  AND c.epoch = d.epoch
RETURNING c.topic, c.partition, c.highest
