-- Ends the dead letter of a replay that completed. $1 replay. No rows.
UPDATE hapax.dead_letters d
SET ended_at = clock_timestamp(), ended_as = 'replayed', ended_by = r.who, ended_why = r.why
FROM hapax.replays r WHERE r.id = $1 AND d.id = r.dead_letter AND d.ended_at IS NULL
