-- Keeps a failed run of a claimed replay, and gives the claim up until the next try.
-- $1 replay, $2 its runs as claimed, $3 error, $4 SQLSTATE or NULL, $5 seconds to the next try.
-- No rows.
UPDATE hapax.replays
SET claimed_until = NULL, last_error = $3, sqlstate = $4,
    next_try = clock_timestamp() + make_interval(secs => $5)
WHERE id = $1 AND runs = $2 AND claimed_until IS NOT NULL AND ended_at IS NULL
