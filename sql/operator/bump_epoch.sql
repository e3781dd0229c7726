-- Decisions that leave the checkpoint as it is: the fence moves, so that a frozen worker that wakes
-- can't go on. started_runs starts again at 0 in every decision, because a halt is no crash.
-- $1 group, $2 topic, $3 partition or NULL (all). Rows as JSON.
UPDATE hapax.checkpoints c SET epoch = c.epoch + 1, started_runs = 0,
    updated_at = now()
WHERE group_id = $1 AND topic = $2 AND ($3::int IS NULL OR partition = $3)
RETURNING to_json(c)
