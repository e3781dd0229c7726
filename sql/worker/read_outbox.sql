-- The next records of each topic in the order of ids, without those that are halted. Bytes as hex.
-- $1 group, $2 topics, $3 the ids behind which each is read, $4 records of a topic at most, $5 bytes of
-- a topic at most, but one record in any case, $6 ids that the relay has in hand.
-- `bytes`: those of key, payload and headers. Anyone who sends messages may fill headers, because a
-- correlation id is handed on.
-- Reads each topic by the primary key, and only the payloads that it returns. The length of headers
-- is known only once they are read. So a first bound, by their size on disk, which is no larger,
-- keeps most of what is not returned from being read.
SELECT r.id, r.topic, encode(r.record_key, 'hex') AS record_key, encode(r.payload, 'hex') AS payload,
       r.headers::text AS headers, r.idempotency_key, r.source_topic, r.source_generation,
       r.source_partition, r.source_offset, r.bytes
FROM (
  SELECT m.*, sum(m.bytes) OVER (PARTITION BY m.topic ORDER BY m.id) - m.bytes AS before
  FROM (
    SELECT s.*, s.bytes_beside + octet_length(s.headers::text) AS bytes
    FROM (
      SELECT n.*, sum(n.bytes_on_disk) OVER (PARTITION BY n.topic ORDER BY n.id) - n.bytes_on_disk
                    AS on_disk_before
      FROM unnest($2::text[], $3::bigint[]) AS t (topic, mark) CROSS JOIN LATERAL (
        SELECT o.*, b.bytes_beside,
               b.bytes_beside + greatest(pg_column_size(o.headers) - 4, 0) AS bytes_on_disk
        FROM hapax.outbox o CROSS JOIN LATERAL (
          SELECT coalesce(octet_length(o.payload), 0) + coalesce(octet_length(o.record_key), 0)
                   AS bytes_beside) b
        WHERE o.group_id = $1 AND o.topic = t.topic COLLATE "C" AND o.id > t.mark
          AND o.id NOT IN (SELECT unnest($6::bigint[]))
          AND NOT EXISTS (SELECT FROM hapax.outbox_halts h
                          WHERE h.group_id = $1 AND h.topic = t.topic COLLATE "C"
                            AND h.ended_at IS NULL
                            AND (h.row_id = o.id OR h.record_key = o.record_key))
        ORDER BY o.id LIMIT $4) n
      WHERE NOT EXISTS (SELECT FROM hapax.outbox_halts h
                        WHERE h.group_id = $1 AND h.topic = t.topic COLLATE "C"
                          AND h.ended_at IS NULL AND h.row_id IS NULL)) s
    WHERE s.on_disk_before < $5) m) r
WHERE r.before < $5
ORDER BY r.id
