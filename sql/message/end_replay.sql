-- Ends a claimed replay; nothing if it ended or another worker has claimed it since.
-- $1 replay, $2 its runs as claimed, $3 outcome, $4 detail or NULL, $5 error or NULL, $6 SQLSTATE or
-- NULL. No rows.
UPDATE hapax.replays
SET ended_at = clock_timestamp(), outcome = $3, detail = $4, claimed_until = NULL,
    last_error = coalesce($5, last_error), sqlstate = coalesce($6, sqlstate)
WHERE id = $1 AND runs = $2 AND ended_at IS NULL
