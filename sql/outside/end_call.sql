-- The operation ends, or waits for an operator, without being booked.
-- $1 key, $2 scope, $3 tenant, $4 token, $5 status, $6 why, $7 retention in seconds.
-- Status: `completed` (the other side refused), `failed` (surely never called), `started` (surely not
-- called behind the steps that are kept) or `unknown`. One row, unless another holder took the key
-- over, or the call is at rest already.
-- An operator's give-up leaves `given up by …` as the error of a completed key, see read_outcome.sql.
-- So a refusal in such words gets a word in front.
UPDATE hapax.idempotency_keys
SET status = $5, holder = NULL, alone = false, updated_at = now(),
    calls = calls - ($5 = 'started')::int,
    error = CASE WHEN $5 = 'completed' AND $6 LIKE 'given up by %' THEN 'refused: ' ELSE '' END || $6,
    expires_at = CASE WHEN $5 IN ('started', 'unknown') THEN 'infinity'
                 ELSE now() + make_interval(secs => $7) END
WHERE key = $1 AND scope = $2 AND tenant = $3 AND token = $4 AND status IN ('started', 'answered')
  AND ($5 <> 'started' OR holder IS NOT NULL)
RETURNING token
