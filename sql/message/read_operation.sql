-- What has become of a request that the gate accepted: the gate's key, and beside it the worker's.
-- $1 key, $2 scope, $3 tenant of the gate's key; $4 the record's idempotency key; $5 paths of the
-- gate's routes, and $6 in which scope the worker of each keeps its keys; $7 the gate's retention in
-- seconds.
-- One row, or none if the gate has no such key. `waits`: the outcome has not been seen yet (its key
-- was claimed for a century). `settled`: that this outcome was seen is committed.
SELECT g.expires_at > now() + interval '50 years' AS waits, r.scope, w.status, w.result, w.error IS NOT NULL AS refused,
       (SELECT d.reason = 'rejected' FROM hapax.dead_letters d
        WHERE d.group_id = w.group_id AND d.topic = w.topic AND d.generation = w.generation
          AND d.partition = w.partition AND d.kafka_offset = w.kafka_offset) AS rejected,
       w.error, coalesce(g.expires_at = w.updated_at + make_interval(secs => $7), false) AS settled
FROM hapax.idempotency_keys g
     JOIN unnest($5::text[], $6::text[]) AS r (path, scope) ON r.path = g.topic
     LEFT JOIN LATERAL (SELECT * FROM hapax.idempotency_keys k
                        WHERE k.key = $4 COLLATE "C" AND k.scope = r.scope COLLATE "C"
                          AND k.tenant IN ('', g.tenant)
                        ORDER BY k.tenant DESC LIMIT 1) w ON true
WHERE g.key = $1 AND g.scope = $2 AND g.tenant = $3
