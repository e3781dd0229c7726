-- Published records, whose ids are drawn in the order of the arrays. Run directly before the seal: the
-- transaction then holds all its locks, so ids follow the order in which transactions serialised.
-- $1 group, $2 topics, $3 record keys, $4 payloads, $5 headers, $6 idempotency keys, $7 source topic,
-- $8 source generations, $9 source partitions, $10 source offsets. No rows.
INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, idempotency_key, source_topic,
                          source_generation, source_partition, source_offset)
SELECT $1, r.topic, r.record_key, r.payload, r.headers::json, r.idempotency_key, $7, r.generation,
       r.partition, r.kafka_offset
FROM unnest($2::text[], $3::bytea[], $4::bytea[], $5::text[], $6::text[], $8::int[], $9::int[],
            $10::bigint[])
  WITH ORDINALITY AS r (topic, record_key, payload, headers, idempotency_key, generation, partition,
                        kafka_offset, n)
ORDER BY r.n
