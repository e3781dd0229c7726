-- An operator decides what became of a call. Its token fences a holder that comes back.
-- $1 key, $2 scope, $3 tenant, $4 status: `answered` (it happened), `forgotten` (it did not: the next
-- take calls) or `completed` (given up), $5 the answer or NULL, $6 error or NULL, $7 retention in
-- seconds. No rows. A `forgotten` key stays a week at least, so that the replay can begin. If steps of
-- the call are kept, only the step in doubt did not happen. So the key stays with its message:
-- `started`, without a call, and without an error, because it is not at rest (read_rest.sql).
UPDATE hapax.idempotency_keys
SET status = CASE WHEN $4 = 'forgotten' AND steps IS NOT NULL THEN 'started' ELSE $4 END,
    calls = CASE WHEN $4 = 'forgotten' AND steps IS NOT NULL THEN 0 ELSE calls END,
    crashes = CASE WHEN $4 = 'forgotten' AND steps IS NOT NULL THEN 0 ELSE crashes END,
    error = CASE WHEN $4 = 'forgotten' AND steps IS NOT NULL THEN NULL ELSE $6 END,
    answer = $5::json, holder = NULL, token = token + 1, updated_at = now(), alone = false,
    expires_at = CASE
      WHEN $4 = 'answered' OR $4 = 'forgotten' AND steps IS NOT NULL THEN 'infinity'
      WHEN $4 = 'forgotten' THEN now() + greatest(make_interval(secs => $7), interval '7 days')
      ELSE now() + make_interval(secs => $7) END
WHERE key = $1 AND scope = $2 AND tenant = $3
