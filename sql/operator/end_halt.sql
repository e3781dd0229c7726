-- Ends a halt. $1 id, $2 who, $3 why, $4 decision. No rows.
UPDATE hapax.halts SET ended_at = now(), ended_by = $2, why = $3, decision = $4 WHERE id = $1
