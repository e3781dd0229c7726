-- The messages of partitions that failed before and are still ahead of the checkpoint.
-- $1 group, $2 topics, $3 partitions, $4 generations, $5 first offsets. Bounded by the queues of the
-- workers that had them. No wait is longer than it was at the failure, also if the clock went back.
SELECT a.topic, a.partition, a.kafka_offset, a.count, a.crashes,
       (extract(epoch FROM a.last_at - a.first_at) * 1000)::bigint AS lasting_ms,
       greatest(0, extract(epoch FROM a.next_try - greatest(clock_timestamp(), a.last_at))
                * 1000)::bigint AS wait_ms
FROM unnest($2::text[], $3::int[], $4::int[], $5::bigint[])
  AS d (topic, partition, generation, first_offset)
JOIN hapax.attempts a
  ON a.group_id = $1 AND a.topic = d.topic COLLATE "C" AND a.generation = d.generation
 AND a.partition = d.partition AND a.kafka_offset >= d.first_offset
