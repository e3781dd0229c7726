-- How many records wait, counting at most $2, and for how long the oldest has.
-- $1 group, $3 topics, $4 the ids behind which each is read.
SELECT (SELECT count(*) FROM (
          SELECT FROM unnest($3::text[], $4::bigint[]) AS t (topic, mark) CROSS JOIN LATERAL (
            SELECT FROM hapax.outbox o
            WHERE o.group_id = $1 AND o.topic = t.topic COLLATE "C" AND o.id > t.mark LIMIT $2) n
          LIMIT $2) o) AS unsent,
       coalesce((SELECT greatest(0, extract(epoch FROM clock_timestamp() - min(n.created_at)))
        FROM unnest($3::text[], $4::bigint[]) AS t (topic, mark) CROSS JOIN LATERAL (
          SELECT o.created_at FROM hapax.outbox o
          WHERE o.group_id = $1 AND o.topic = t.topic COLLATE "C" AND o.id > t.mark
          ORDER BY o.id LIMIT 1) n), 0)::float8 AS oldest
