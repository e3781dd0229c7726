-- Decision accept: the key spec of the next start goes on from this checkpoint. Not '', which tells a
-- start that begins a log (worker/log_number.cpp).
-- $1 group, $2 topic, $3 partition. One row as JSON, or none.
UPDATE hapax.checkpoints c SET key_spec = 'accepted', epoch = c.epoch + 1, started_runs = 0,
    updated_at = now()
WHERE group_id = $1 AND topic = $2 AND partition = $3
RETURNING to_json(c)
