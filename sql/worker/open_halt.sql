-- Records a halt; the first reason stays. Not if another worker has taken the partition meanwhile: it has
-- met the cause by itself, or the cause is gone. But a handler that ended hapax's transaction may have
-- committed a part, so that is recorded in any case.
-- $1 group, $2 topic, $3 partition, $4 whole route, $5 generation, $6 offset or NULL, $7 reason,
-- $8 detail, $9 worker, $10 epoch of the partition (0: its start was not agreed). No rows.
INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, kafka_offset, reason,
  detail, halted_by)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
WHERE $10::bigint = 0 OR $7 = 'handler_ended_transaction'
   OR $10::bigint = (SELECT c.epoch FROM hapax.checkpoints c
                     WHERE c.group_id = $1 AND c.topic = $2 AND c.partition = $3)
ON CONFLICT (group_id, topic, (CASE WHEN whole_route THEN -1 ELSE partition END))
  WHERE ended_at IS NULL DO NOTHING
