-- Kafka has this batch: removes its records. $1 group, $2 topic, $3 token. No rows.
-- The LIMIT makes PostgreSQL look each id up, as in delete_outbox.sql.
DELETE FROM hapax.outbox WHERE ctid = ANY (ARRAY(
  SELECT o.ctid
  FROM (SELECT unnest(ids) AS id FROM hapax.outbox_batches
        WHERE group_id = $1 AND topic = $2 AND token = $3::uuid) sent
  CROSS JOIN LATERAL (
    SELECT ctid FROM hapax.outbox WHERE group_id = $1 AND topic = $2 AND id = sent.id LIMIT 1) o))
