-- What the relay has stopped and no operator has decided on yet. Record keys as hex.
-- $1 group. A few rows, as JSON.
SELECT to_json(r) FROM (
  SELECT id, topic, row_id AS record, encode(record_key, 'hex') AS record_key, reason, detail, since,
         halted_by
  FROM hapax.outbox_halts WHERE group_id = $1 AND ended_at IS NULL ORDER BY id) r
