-- How far a bounded look through the keys goes: index only, never the whole table.
-- $1 first key, $2 how many. One row, as JSON.
SELECT to_json(r) FROM (
  SELECT count(*) AS scanned, max(key) AS last
  FROM (SELECT key FROM hapax.idempotency_keys WHERE key >= $1
        ORDER BY key, scope, tenant LIMIT $2) k) r
