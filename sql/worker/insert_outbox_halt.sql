-- The relay stops sending a record and those with its key, or a topic. $1 group, $2 topic, $3 record's id
-- or NULL, $4 reason, $5 detail, $6 relay. No row if that is halted already.
INSERT INTO hapax.outbox_halts (group_id, topic, row_id, record_key, reason, detail, halted_by)
SELECT $1, $2, $3::bigint,
       (SELECT o.record_key FROM hapax.outbox o WHERE o.group_id = $1 AND o.topic = $2 AND o.id = $3),
       $4, $5, $6
ON CONFLICT DO NOTHING RETURNING 1
