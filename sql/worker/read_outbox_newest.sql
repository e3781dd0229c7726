-- The newest id of each topic that has any. $1 group, $2 topics, $3 the ids behind which each is read.
SELECT t.topic, n.id FROM unnest($2::text[], $3::bigint[]) AS t (topic, mark) CROSS JOIN LATERAL (
  SELECT o.id FROM hapax.outbox o
  WHERE o.group_id = $1 AND o.topic = t.topic COLLATE "C" AND o.id > t.mark
  ORDER BY o.id DESC LIMIT 1) n
