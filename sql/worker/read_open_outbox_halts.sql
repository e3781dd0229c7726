-- What the relay does not send until an operator decides. $1 group. A few rows.
SELECT id, topic, row_id FROM hapax.outbox_halts WHERE group_id = $1 AND ended_at IS NULL ORDER BY id
