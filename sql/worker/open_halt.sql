-- Records a halt; the first reason stays.
-- $1 group, $2 topic, $3 partition, $4 whole route, $5 generation, $6 offset or NULL, $7 reason,
-- $8 detail, $9 worker. No rows.
INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, kafka_offset, reason,
  detail, halted_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (group_id, topic, (CASE WHEN whole_route THEN -1 ELSE partition END))
  WHERE ended_at IS NULL DO NOTHING
