-- Has keys of accepted requests expire, counted from their outcomes (read_outcome.sql). Committed
-- synchronously, it also makes these outcomes durable.
-- $1 keys, $2 scopes, $3 tenants of the gate's keys; $4 the records' idempotency keys, $5 scopes of their
-- workers; $6 the gate's retention in seconds. A row: of how many the outcome is there.
WITH settled AS (
  UPDATE hapax.idempotency_keys g
  SET expires_at = greatest(w.updated_at, g.updated_at) + make_interval(secs => $6)
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
         AS a (key, scope, tenant, record, worker_scope),
       hapax.idempotency_keys w
  WHERE g.key = a.key COLLATE "C" AND g.scope = a.scope COLLATE "C" AND g.tenant = a.tenant COLLATE "C"
    AND w.key = a.record COLLATE "C" AND w.scope = a.worker_scope COLLATE "C"
    AND (w.status = 'completed' OR w.status = 'failed' AND w.updated_at > '-infinity')
  RETURNING 1)
SELECT count(*) AS settled FROM settled
