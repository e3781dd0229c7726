-- Decision run: messages from this offset on count as new again.
-- $1 group, $2 topic, $3 partition, $4 the halt's offset. One row as JSON, or none.
UPDATE hapax.checkpoints c SET highest = $4, epoch = c.epoch + 1, started_runs = 0,
    updated_at = now()
WHERE group_id = $1 AND topic = $2 AND partition = $3
RETURNING to_json(c)
