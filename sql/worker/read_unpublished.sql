-- The next open dead letters that are not in Kafka, by id, with all that is published of them. Bytes
-- as hex, headers in their order as [name, value], null staying null.
-- $1 group, $2 topics, $3 limit, $4 bytes of payloads, keys and headers at most, but one letter in any
-- case.
-- Reads each topic by dead_letters_to_publish, the headers of $3 letters at most, and only the payloads
-- that it returns. Leaves out those whose replay is wanted and has not ended: it may succeed. Locks the
-- rows, and leaves out those that another transaction has locked.
WITH next AS (
  SELECT n.id, sum(b.bytes) OVER (ORDER BY n.id) - b.bytes AS bytes_before
  FROM (
    SELECT l.* FROM unnest($2::text[]) AS t (topic) CROSS JOIN LATERAL (
      SELECT d.id, d.payload, d.message_key, d.header_names, d.header_values
      FROM hapax.dead_letters d
      WHERE d.group_id = $1 AND d.topic = t.topic AND d.published_at IS NULL AND d.ended_at IS NULL
        AND NOT EXISTS (SELECT FROM hapax.replays r
                        WHERE r.dead_letter = d.id AND r.ended_at IS NULL)
      ORDER BY d.id LIMIT $3) l
    ORDER BY l.id LIMIT $3) n
  CROSS JOIN LATERAL (
    SELECT coalesce(octet_length(n.payload), 0) + coalesce(octet_length(n.message_key), 0)
             + coalesce(sum(octet_length(h.name) + coalesce(octet_length(h.value), 0)), 0) AS bytes
    FROM unnest(n.header_names, n.header_values) AS h (name, value)) b)
SELECT d.id, d.topic, d.generation, d.partition, d.kafka_offset, d.message_timestamp, d.timestamp_type,
       encode(d.message_key, 'hex') AS message_key, encode(d.payload, 'hex') AS payload,
       (SELECT coalesce(json_agg(json_build_array(encode(h.name, 'hex'), encode(h.value, 'hex'))
                        ORDER BY h.i), '[]'::json)
        FROM unnest(d.header_names, d.header_values) WITH ORDINALITY AS h (name, value, i))
         AS headers,
       coalesce(d.other->>'bytes_kept', '') = 'false' AS without_bytes, d.reason, d.error, d.sqlstate, d.attempts, d.handler, d.handler_version,
       to_char(d.first_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS first_at,
       to_char(d.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at
FROM next n JOIN hapax.dead_letters d ON d.id = n.id
WHERE n.bytes_before < $4 AND d.published_at IS NULL AND d.ended_at IS NULL
ORDER BY d.id
FOR UPDATE OF d SKIP LOCKED
