-- Writes the agreed start of a partition before anything is dispatched, and counts the run.
-- $1 group, $2 topic, $3 partition, $4 epoch, $5 start offset, $6 key spec, $7 scope, $8 cluster id,
-- $9 topic id. One row, or none when the partition has been taken meanwhile.
UPDATE hapax.checkpoints
SET next_offset = $5, highest = greatest(highest, $5), key_spec = $6, scope = $7, cluster_id = $8,
    topic_id = coalesce($9, topic_id), start_as = NULL, highest_settled = NULL,
    started_runs = started_runs + 1, updated_at = now()
WHERE group_id = $1 AND topic = $2 AND partition = $3 AND epoch = $4
RETURNING highest
