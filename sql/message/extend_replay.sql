-- The run of a claimed replay goes on: it calls to the outside, or asks a registry. $1 replay, $2 its runs as claimed, $3
-- seconds. No rows.
UPDATE hapax.replays SET claimed_until = clock_timestamp() + make_interval(secs => $3)
WHERE id = $1 AND runs = $2 AND claimed_until IS NOT NULL AND ended_at IS NULL
