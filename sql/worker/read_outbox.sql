-- The next records of each topic in the order of ids, without those that are halted. Bytes as hex.
-- $1 group, $2 topics, $3 the ids behind which each is read, $4 records of a topic at most, $5 bytes of
-- a topic at most, but one record in any case, $6 ids that the relay has in hand.
-- Reads each topic by the primary key, and only the payloads that it returns.
SELECT r.id, r.topic, encode(r.record_key, 'hex') AS record_key, encode(r.payload, 'hex') AS payload,
       r.headers::text AS headers, r.idempotency_key, r.source_topic, r.source_generation,
       r.source_partition, r.source_offset
FROM (
  SELECT n.*, sum(n.bytes) OVER (PARTITION BY n.topic ORDER BY n.id) - n.bytes AS before
  FROM unnest($2::text[], $3::bigint[]) AS t (topic, mark) CROSS JOIN LATERAL (
    SELECT o.*,
           coalesce(octet_length(o.payload), 0) + coalesce(octet_length(o.record_key), 0) AS bytes
    FROM hapax.outbox o
    WHERE o.group_id = $1 AND o.topic = t.topic COLLATE "C" AND o.id > t.mark
      AND o.id NOT IN (SELECT unnest($6::bigint[]))
      AND NOT EXISTS (SELECT FROM hapax.outbox_halts h
                      WHERE h.group_id = $1 AND h.topic = t.topic COLLATE "C" AND h.ended_at IS NULL
                        AND (h.row_id = o.id OR h.record_key = o.record_key))
    ORDER BY o.id LIMIT $4) n
  WHERE NOT EXISTS (SELECT FROM hapax.outbox_halts h
                    WHERE h.group_id = $1 AND h.topic = t.topic COLLATE "C" AND h.ended_at IS NULL
                      AND h.row_id IS NULL)) r
WHERE r.before < $5
ORDER BY r.id
