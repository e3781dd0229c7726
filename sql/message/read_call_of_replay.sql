-- Whether a replay has called, or carries out a decision about a call. A schema from 18 on. $1 replay. One
-- row.
SELECT token IS NOT NULL AS has_call FROM hapax.replays WHERE id = $1
