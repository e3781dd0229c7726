-- The dead letters of a stretch of offsets, without their messages; by the unique index.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 first offset, $6 below this offset.
SELECT id, kafka_offset, reason, left(error, 300) AS error,
       to_json(created_at) #>> '{}' AS created_at, to_json(ended_at) #>> '{}' AS ended_at, ended_as,
       ended_by, ended_why
FROM hapax.dead_letters
WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4 AND kafka_offset >= $5
  AND kafka_offset < $6
