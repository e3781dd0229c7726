-- Sets where a partition goes on, whatever Kafka's offset says. The epoch moves, so that a live
-- worker notices and a frozen one that wakes can't undo it; below `highest` what nobody remembers
-- halts (guarantees I8).
-- `highest_settled` stays: under another key spec what was settled beyond would run again.
-- $1 group, $2 topic, $3 partition, $4 offset. One row as JSON.
UPDATE hapax.checkpoints c
SET next_offset = $4, highest = greatest(highest, $4), start_as = 'checkpoint', epoch = c.epoch + 1, started_runs = 0, updated_at = now()
WHERE group_id = $1 AND topic = $2 AND partition = $3
RETURNING to_json(c)
