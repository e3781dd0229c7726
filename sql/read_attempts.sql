-- The messages of a partition that failed before and are still ahead of the checkpoint.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 first offset. Bounded by the caller's queue.
SELECT kafka_offset, count,
       (extract(epoch FROM last_at - first_at) * 1000)::bigint AS lasting_ms,
       greatest(0, extract(epoch FROM next_try - clock_timestamp()) * 1000)::bigint AS wait_ms
FROM hapax.attempts
WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4 AND kafka_offset >= $5
