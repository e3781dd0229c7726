-- Keeps what the other side answered; to be committed synchronously before it is booked. The answer
-- to a call that was given up on as unknown is kept for the operator.
-- Arrays: $1 keys, $2 scopes, $3 tenants, $4 tokens of the takes, $5 answers.
-- A row for each that is answered now; n counts from 1. None: another holder took the key over.
WITH ended AS (
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
  WITH ORDINALITY AS e(key, scope, tenant, token, answer, n)
), kept AS (
  UPDATE hapax.idempotency_keys k
  SET status = CASE k.status WHEN 'started' THEN 'answered' ELSE k.status END,
      answer = e.answer::json, updated_at = now(), alone = false
  FROM ended e
  WHERE k.key = e.key COLLATE "C" AND k.scope = e.scope COLLATE "C"
    AND k.tenant = e.tenant COLLATE "C"
    AND (k.status = 'started' AND k.token = e.token OR k.status = 'unknown' AND k.token >= e.token)
  RETURNING e.n, k.status)
SELECT n FROM kept WHERE status = 'answered'
