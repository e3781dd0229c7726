-- Kafka has acknowledged these records of a topic. $1 group, $2 topic, $3 ids. No rows.
-- The LIMIT makes PostgreSQL look each id up. With `id = ANY` it may read the whole topic instead.
DELETE FROM hapax.outbox WHERE ctid = ANY (ARRAY(
  SELECT o.ctid FROM unnest($3::bigint[]) AS sent (id) CROSS JOIN LATERAL (
    SELECT ctid FROM hapax.outbox WHERE group_id = $1 AND topic = $2 AND id = sent.id LIMIT 1) o))
