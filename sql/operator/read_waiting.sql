-- Messages that failed and are not settled: at or above their checkpoint, and no dead letter. One
-- that went on to succeed has no row any more.
-- $1 group, $2 limit, $3 and $4 topic and partition, or NULL: all. Rows by next try, as JSON.
SELECT to_json(r) FROM (
  SELECT a.topic, a.generation, a.partition, a.kafka_offset, a.count, a.crashes, a.last_error, a.sqlstate,
         a.handler, a.first_at, a.next_try,
         greatest(0, extract(epoch FROM a.next_try - now()))::bigint AS wait_seconds
  FROM hapax.checkpoints c
  JOIN hapax.attempts a ON a.group_id = c.group_id AND a.topic = c.topic
    AND a.generation = c.generation AND a.partition = c.partition
    AND a.kafka_offset >= c.next_offset
  WHERE c.group_id = $1 AND ($3::text IS NULL OR (c.topic = $3 AND c.partition = $4))
    AND NOT EXISTS (SELECT FROM hapax.dead_letters d
                    WHERE d.group_id = a.group_id AND d.topic = a.topic
                      AND d.generation = a.generation AND d.partition = a.partition
                      AND d.kafka_offset = a.kafka_offset)
  ORDER BY a.next_try, a.topic, a.partition, a.kafka_offset LIMIT $2) r
