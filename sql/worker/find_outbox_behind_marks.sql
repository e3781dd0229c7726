-- The topics with a record to send at or below their mark. $1 group, $2 topics, $3 their marks.
-- Walks the entries of all records that were removed and that vacuum has not taken yet.
SELECT t.topic FROM unnest($2::text[], $3::bigint[]) AS t (topic, mark) CROSS JOIN LATERAL (
  SELECT FROM hapax.outbox o
  WHERE o.group_id = $1 AND o.topic = t.topic COLLATE "C" AND o.id <= t.mark
    AND NOT EXISTS (SELECT FROM hapax.outbox_halts h
                    WHERE h.group_id = $1 AND h.topic = t.topic COLLATE "C" AND h.ended_at IS NULL
                      AND (h.row_id = o.id OR h.record_key = o.record_key OR h.row_id IS NULL))
  ORDER BY o.id LIMIT 1) n
