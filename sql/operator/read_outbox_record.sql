-- An unsent record, whole. Bytes as hex, headers as the row has them. `held`: what an open halt names
-- of it, if any. Looks into each topic of the group by the primary key.
-- $1 group, $2 id. One row or none, as JSON.
WITH RECURSIVE found AS (
  (SELECT topic FROM hapax.outbox WHERE group_id = $1 ORDER BY topic LIMIT 1)
  UNION ALL
  SELECT (SELECT o.topic FROM hapax.outbox o WHERE o.group_id = $1 AND o.topic > f.topic
          ORDER BY o.topic LIMIT 1) FROM found f WHERE f.topic IS NOT NULL)
SELECT to_json(r) FROM (
  SELECT o.id, o.group_id, o.topic, o.created_at, encode(o.record_key, 'hex') AS record_key,
         o.headers, encode(o.payload, 'hex') AS payload, o.idempotency_key, o.source_topic,
         o.source_generation, o.source_partition, o.source_offset,
         (SELECT CASE WHEN h.row_id = o.id THEN 'record' WHEN h.row_id IS NULL THEN 'topic'
                      ELSE 'key' END
          FROM hapax.outbox_halts h
          WHERE h.group_id = $1 AND h.topic = o.topic AND h.ended_at IS NULL
            AND (h.row_id IS NULL OR h.row_id = o.id OR h.record_key = o.record_key)
          ORDER BY h.row_id = o.id DESC NULLS LAST, h.row_id NULLS FIRST LIMIT 1) AS held
  FROM found f JOIN hapax.outbox o ON o.group_id = $1 AND o.topic = f.topic AND o.id = $2) r
