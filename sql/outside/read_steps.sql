-- The key of an open call with the kept answers of its steps, if the call is still this holder's.
-- $1 key, $2 scope, $3 tenant, $4 token of the take, or NULL for any. One row as JSON: `steps` is an object, null, or
-- missing on the schema before. No row: another holder took the key over.
-- The client takes `steps` out, because PostgreSQL's operators refuse JSON with \u0000 in it.
SELECT row_to_json(k)::text FROM hapax.idempotency_keys k
WHERE key = $1 AND scope = $2 AND tenant = $3 AND ($4::bigint IS NULL OR token = $4)
  AND status IN ('started', 'answered')
