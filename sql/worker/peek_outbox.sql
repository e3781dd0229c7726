-- Whether there is a record to send. $1 group, $2 topics, $3 the ids behind which each is read, $4 ids that
-- the relay has in hand. One row when there is. Writes nothing. The LIMIT of each topic keeps PostgreSQL from reading the table.
SELECT 1 FROM unnest($2::text[], $3::bigint[]) AS t (topic, mark) CROSS JOIN LATERAL (
  SELECT FROM hapax.outbox o
  WHERE o.group_id = $1 AND o.topic = t.topic COLLATE "C" AND o.id > t.mark
    AND o.id NOT IN (SELECT unnest($4::bigint[]))
    AND NOT EXISTS (SELECT FROM hapax.outbox_halts h
                    WHERE h.group_id = $1 AND h.topic = t.topic COLLATE "C" AND h.ended_at IS NULL
                      AND (h.row_id = o.id OR h.record_key = o.record_key))
  ORDER BY o.id LIMIT 1) n
WHERE NOT EXISTS (SELECT FROM hapax.outbox_halts h
                  WHERE h.group_id = $1 AND h.topic = t.topic COLLATE "C" AND h.ended_at IS NULL
                    AND h.row_id IS NULL)
LIMIT 1
