-- Decision accept: the present key spec goes on from this checkpoint.
-- $1 group, $2 topic, $3 partition. One row as JSON, or none.
UPDATE hapax.checkpoints c SET key_spec = '', epoch = c.epoch + 1, started_runs = 0,
    updated_at = now()
WHERE group_id = $1 AND topic = $2 AND partition = $3
RETURNING to_json(c)
