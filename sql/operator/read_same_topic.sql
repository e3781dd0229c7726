-- The last time that an operator let a partition go on in a log that may have lost its end. $1 group,
-- $2 topic, $3 partition, $4 generation. One row or none.
SELECT ended_by AS who, why, to_json(ended_at) #>> '{}' AS at FROM hapax.halts
WHERE group_id = $1 AND topic = $2 AND partition = $3 AND generation = $4
  AND reason = 'offset_above_end' AND decision = 'same_topic'
ORDER BY id DESC LIMIT 1
