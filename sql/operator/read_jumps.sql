-- How a partition's position jumped, oldest first; a row for each deed of an operator or a start.
-- $1 group, $2 topic, $3 partition, $4 generation.
SELECT from_offset, to_offset, cause, who, why, to_json(at) #>> '{}' AS at,
       (extract(epoch FROM at) * 1000)::bigint AS at_ms
FROM hapax.position_changes
WHERE group_id = $1 AND topic = $2 AND partition = $3 AND generation = $4 ORDER BY id
