-- A clean leave: nothing of this partition is running any more.
-- $1 group, $2 topic, $3 partition, $4 epoch, $5 highest offset settled out of order plus 1.
UPDATE hapax.checkpoints
SET owner = NULL, started_runs = 0, highest_settled = $5, updated_at = now()
WHERE group_id = $1 AND topic = $2 AND partition = $3 AND epoch = $4
