-- Sets the offset at which a partition goes on; Kafka's offset does not count. The epoch moves: a live
-- worker notices, and a frozen one that wakes cannot undo it. Below `highest`, an unknown message halts
-- (guarantees I8).
-- `highest_settled` stays: under another key spec what was settled beyond would run again.
-- $1 group, $2 topic, $3 partition, $4 offset. One row as JSON.
UPDATE hapax.checkpoints c
SET next_offset = $4, highest = greatest(highest, $4), start_as = 'checkpoint', epoch = c.epoch + 1, started_runs = 0, updated_at = now()
WHERE group_id = $1 AND topic = $2 AND partition = $3
RETURNING to_json(c)
