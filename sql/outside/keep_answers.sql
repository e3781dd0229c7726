-- Keeps what the other side answered; to be committed synchronously before it is booked. The answer
-- to a call that was given up on as unknown is kept for the operator, unless one is there. The token then
-- grows, so that a decision about the operation without that answer is refused.
-- Arrays: $1 keys, $2 scopes, $3 tenants, $4 tokens of the takes, $5 answers.
-- A row for each that is kept; n counts from 1. `unknown`: for the operator (note_late_answers.sql is
-- next). None: another holder took the key over. The second time does the same, but keeps none for the
-- operator. Locks the rows until the end of the transaction, in the order of keys.
WITH ended AS (
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
  WITH ORDINALITY AS e(key, scope, tenant, token, answer, n)
), locked AS MATERIALIZED (
  SELECT k.key, k.scope, k.tenant, e.token, e.answer, e.n
  FROM ended e JOIN hapax.idempotency_keys k ON k.key = e.key COLLATE "C"
    AND k.scope = e.scope COLLATE "C" AND k.tenant = e.tenant COLLATE "C"
  ORDER BY k.key, k.scope, k.tenant FOR UPDATE OF k
), kept AS (
  UPDATE hapax.idempotency_keys k
  SET status = CASE k.status WHEN 'started' THEN 'answered' ELSE k.status END,
      error = CASE k.status WHEN 'unknown' THEN k.error END, answer = l.answer::json,
      token = k.token + (k.status = 'unknown')::int, updated_at = now(), alone = false
  FROM locked l
  WHERE k.key = l.key AND k.scope = l.scope AND k.tenant = l.tenant
    AND (k.status IN ('started', 'answered') AND k.token = l.token
         OR k.status = 'unknown' AND k.token >= l.token AND k.answer IS NULL)
  RETURNING l.n, k.status)
SELECT n, status FROM kept
