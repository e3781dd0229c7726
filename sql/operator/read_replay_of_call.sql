-- The replay that has made a call. A schema from 18 on. $1 letter, $2 key, $3 tenant, $4 token of the
-- call. One row. `id` is NULL if the message itself has called. `is_doubtful`: a worker of the schema
-- before may have made the call, with an edited payload.
SELECT r.id, coalesce(r.edited, false) AS edited,
       r.id IS NULL AND EXISTS (
         SELECT FROM hapax.replays o
         WHERE o.dead_letter = $1 AND o.edited AND o.runs > 0 AND o.token IS NULL
           AND o.outcome IS DISTINCT FROM 'refused') AS is_doubtful
FROM (SELECT) AS one
LEFT JOIN LATERAL (
  SELECT id, edited FROM hapax.replays
  WHERE dead_letter = $1 AND key = $2 AND tenant = $3 AND token = $4
  ORDER BY id DESC LIMIT 1) AS r ON true
