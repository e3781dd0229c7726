-- An open halt of a topic tells from now on what became of a batch: an operator must know that before
-- the topic goes on. $1 group, $2 topic, $3 reason, $4 detail, $5 relay. One row if the topic is halted.
UPDATE hapax.outbox_halts
SET reason = $3, detail = $4 || '; before that: ' || reason || ', ' || detail, halted_by = $5
WHERE group_id = $1 AND topic = $2 AND row_id IS NULL AND ended_at IS NULL
RETURNING 1
