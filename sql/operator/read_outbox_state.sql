-- What waits in a group's outbox, by topic, counting at most $2 of each. Finds each topic by one step
-- of the primary key. $1 group. A row for each topic, as JSON.
WITH RECURSIVE found AS (
  (SELECT topic FROM hapax.outbox WHERE group_id = $1 ORDER BY topic LIMIT 1)
  UNION ALL
  SELECT (SELECT o.topic FROM hapax.outbox o WHERE o.group_id = $1 AND o.topic > f.topic
          ORDER BY o.topic LIMIT 1) FROM found f WHERE f.topic IS NOT NULL)
SELECT to_json(r) FROM (
  SELECT f.topic, n.unsent, o.id AS oldest, o.created_at AS since,
         floor(greatest(0, extract(epoch FROM clock_timestamp() - o.created_at)))::bigint
           AS oldest_seconds
  FROM found f CROSS JOIN LATERAL (
    SELECT count(*) AS unsent FROM (
      SELECT FROM hapax.outbox c WHERE c.group_id = $1 AND c.topic = f.topic LIMIT $2) c) n
  CROSS JOIN LATERAL (
    SELECT c.id, c.created_at FROM hapax.outbox c WHERE c.group_id = $1 AND c.topic = f.topic
    ORDER BY c.id LIMIT 1) o
  WHERE f.topic IS NOT NULL ORDER BY f.topic) r
