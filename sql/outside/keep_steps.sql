-- Keeps the answers of steps; to be committed synchronously before the next step begins.
-- If the call was given up on as unknown, they are kept for the operator, and the token grows, as
-- keep_answers.sql does. Not if steps of another holder are there.
-- Arrays: $1 keys, $2 scopes, $3 tenants, $4 tokens of the takes, $5 all steps of the call, a JSON object,
-- $6 those that are there, '' if none are.
-- A row for each call whose steps are kept; n counts from 1. `unknown`: for the operator
-- (note_late_answers.sql is next). None: another holder took the key over. The second time does the same,
-- but keeps none for the operator. Locks the rows until the end of the transaction, in the order of keys.
WITH done AS (
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[])
  WITH ORDINALITY AS e(key, scope, tenant, token, steps, before, n)
), locked AS MATERIALIZED (
  SELECT k.key, k.scope, k.tenant, d.token, d.steps, d.before, d.n
  FROM done d JOIN hapax.idempotency_keys k ON k.key = d.key COLLATE "C"
    AND k.scope = d.scope COLLATE "C" AND k.tenant = d.tenant COLLATE "C"
  ORDER BY k.key, k.scope, k.tenant FOR UPDATE OF k
), kept AS (
  UPDATE hapax.idempotency_keys k
  SET steps = l.steps::json, updated_at = now(), token = k.token + (k.status = 'unknown')::int
  FROM locked l
  WHERE k.key = l.key AND k.scope = l.scope AND k.tenant = l.tenant
    AND (k.status = 'started' AND k.token = l.token
         OR k.status = 'unknown' AND k.token >= l.token AND coalesce(k.steps::text, '') = l.before)
  RETURNING l.n, k.status)
SELECT n, status FROM kept
