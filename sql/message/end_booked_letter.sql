-- Ends the open dead letter of a message that came again and books the answer to its call. An operator
-- decided that the call happened, and the message was faster than the replay.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset. No rows.
UPDATE hapax.dead_letters
SET ended_at = clock_timestamp(), ended_as = 'replayed', ended_by = 'hapax',
    ended_why = 'the message came again, and booked the answer'
WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4 AND kafka_offset = $5
  AND ended_at IS NULL
