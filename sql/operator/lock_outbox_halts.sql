-- The open halts that an operator means: of a topic and its records, or of one record; NULL: all. A number
-- means the record, if that is halted, and not a topic of that name.
-- $1 group, $2 topic or record's id or NULL. A few rows, as read_outbox_halts.sql; locks them.
SELECT to_json(r) FROM (
  SELECT id, topic, row_id AS record, encode(record_key, 'hex') AS record_key, reason, detail, since,
         halted_by
  FROM hapax.outbox_halts
  WHERE group_id = $1 AND ended_at IS NULL
    AND ($2::text IS NULL OR row_id::text = $2 OR topic = $2 COLLATE "C" AND NOT EXISTS (
      SELECT FROM hapax.outbox_halts o
      WHERE o.group_id = $1 AND o.ended_at IS NULL AND o.row_id::text = $2))
  ORDER BY id FOR UPDATE) r
