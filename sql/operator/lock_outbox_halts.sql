-- The open halts that an operator means: of a topic and its records, or of one record; NULL: all.
-- $1 group, $2 topic or record's id or NULL. A few rows, as read_outbox_halts.sql; locks them.
SELECT to_json(r) FROM (
  SELECT id, topic, row_id AS record, encode(record_key, 'hex') AS record_key, reason, detail, since,
         halted_by
  FROM hapax.outbox_halts
  WHERE group_id = $1 AND ended_at IS NULL
    AND ($2::text IS NULL OR topic = $2 COLLATE "C" OR row_id::text = $2)
  ORDER BY id FOR UPDATE) r
