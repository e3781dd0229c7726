-- Has keys of accepted requests expire, counted from their outcomes. Committed synchronously, it also
-- makes these outcomes durable.
-- $1 keys, $2 tenants, $3 the records' idempotency keys, $4 scopes of their workers, $5 scope of the
-- gate, $6 its retention in seconds. A row: of how many the outcome is there.
WITH settled AS (
  UPDATE hapax.idempotency_keys g SET expires_at = o.expires_at
  FROM (SELECT a.key, a.tenant, w.updated_at + make_interval(secs => $6) AS expires_at
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS a (key, tenant, record, scope),
             LATERAL (SELECT k.updated_at FROM hapax.idempotency_keys k
                      WHERE k.key = a.record COLLATE "C" AND k.scope = a.scope COLLATE "C"
                        AND k.tenant IN ('', a.tenant) AND k.status IN ('completed', 'failed')
                      ORDER BY k.tenant DESC LIMIT 1) w) o
  WHERE g.key = o.key COLLATE "C" AND g.scope = $5 AND g.tenant = o.tenant COLLATE "C"
  RETURNING 1)
SELECT count(*) AS settled FROM settled
