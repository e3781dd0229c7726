-- Unsent records of a topic in the order of ids. `held`: what an open halt names of it, if any.
-- $1 group, $2 topic, $3 ids above this one, $4 limit. Rows as JSON; keys as hex.
SELECT to_json(r) FROM (
  SELECT o.id, o.created_at, encode(o.record_key, 'hex') AS record_key,
         octet_length(o.payload) AS payload_bytes, o.idempotency_key, o.source_topic,
         o.source_generation, o.source_partition, o.source_offset,
         (SELECT CASE WHEN h.row_id = o.id THEN 'record' WHEN h.row_id IS NULL THEN 'topic'
                      ELSE 'key' END
          FROM hapax.outbox_halts h
          WHERE h.group_id = $1 AND h.topic = o.topic AND h.ended_at IS NULL
            AND (h.row_id IS NULL OR h.row_id = o.id OR h.record_key = o.record_key)
          ORDER BY h.row_id = o.id DESC NULLS LAST, h.row_id NULLS FIRST LIMIT 1) AS held
  FROM hapax.outbox o
  WHERE o.group_id = $1 AND o.topic = $2 AND o.id > $3
  ORDER BY o.id LIMIT $4) r
