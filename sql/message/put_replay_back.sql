-- Gives a claimed replay back as if this run had not begun: PostgreSQL was away, or the key held.
-- $1 replay, $2 its runs as claimed, $3 worker, $4 seconds to the next try, $5 why or NULL. No rows.
UPDATE hapax.replays
SET runs = runs - 1, claimed_until = NULL,
    next_try = clock_timestamp() + make_interval(secs => $4), last_error = coalesce($5, last_error)
WHERE id = $1 AND runs = $2 AND claimed_by = $3 AND claimed_until IS NOT NULL AND ended_at IS NULL
