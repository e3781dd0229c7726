-- How many operations of these scopes call to the outside and are not done, by status, counting at most
-- $2. `abandoned`: of these, started or answered, and no worker has them under a lease. The index by
-- expiry leads to them. $1 scopes. One row as JSON.
SELECT to_json(r) FROM (
  SELECT count(*) FILTER (WHERE status = 'started') AS started,
         count(*) FILTER (WHERE status = 'answered') AS answered,
         count(*) FILTER (WHERE status = 'unknown') AS unknown,
         count(*) FILTER (WHERE status <> 'unknown' AND NOT has_lease) AS abandoned
  FROM (SELECT k.status, coalesce(h.until >= clock_timestamp(), false) AS has_lease
        FROM hapax.idempotency_keys k LEFT JOIN hapax.holders h ON h.id = k.holder
        WHERE k.expires_at = 'infinity' AND k.scope = ANY ($1::text[])
          AND k.status IN ('started', 'answered', 'unknown') LIMIT $2) c) r
