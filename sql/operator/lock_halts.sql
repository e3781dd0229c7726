-- The open halts that an operator means: all of a topic, or one partition's own; with an offset also
-- a route's at that message. $1 group, $2 topic, $3 partition or NULL, $4 offset or NULL. Rows;
-- locks them.
SELECT id, topic, partition, whole_route, generation, kafka_offset, reason, detail, since, halted_by
FROM hapax.halts
WHERE group_id = $1 AND topic = $2 AND ended_at IS NULL
  AND ($3::int IS NULL OR (partition = $3 AND (NOT whole_route OR kafka_offset = $4::bigint)))
ORDER BY id FOR UPDATE
