-- The failed runs of a stretch of offsets; by the primary key.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 first offset, $6 below this offset.
SELECT kafka_offset, count, crashes, left(last_error, 300) AS last_error,
       to_json(last_at) #>> '{}' AS last_at, to_json(next_try) #>> '{}' AS next_try
FROM hapax.attempts
WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4 AND kafka_offset >= $5
  AND kafka_offset < $6
