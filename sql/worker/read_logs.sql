-- The numbers of logs that are known for partitions: from hapax.logs, and from the checkpoints of
-- other groups. (A worker of the schema before writes no logs.)
-- $1 group, $2 topics, $3 partitions. A few rows for each. `agreed`: from hapax.logs. `reached` and
-- `last_record`: such a checkpoint, and the last record below it (NULL on a schema before 15).
SELECT l.topic, l.partition, l.scope, l.cluster_id, l.topic_id, l.generation, true AS agreed,
       0 AS reached, NULL AS last_record
FROM unnest($2::text[], $3::int[]) AS d (topic, partition)
JOIN hapax.logs l ON l.topic = d.topic COLLATE "C" AND l.partition = d.partition
UNION ALL
SELECT c.topic, c.partition, c.scope, c.cluster_id, coalesce(c.topic_id, ''), c.generation, false,
       coalesce(c.next_offset, 0), to_jsonb(c) ->> 'last_record'
FROM unnest($2::text[], $3::int[]) AS d (topic, partition)
JOIN hapax.checkpoints c ON c.topic = d.topic COLLATE "C" AND c.partition = d.partition
WHERE c.group_id <> $1 AND c.cluster_id IS NOT NULL
ORDER BY 1, 2, 3, 4, 5, 6, 7
