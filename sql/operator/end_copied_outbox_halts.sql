-- Decision copy: the records that these halts are about are the original's. Of every group. $1 who,
-- $2 why. Rows as JSON.
UPDATE hapax.outbox_halts h
SET ended_at = now(), ended_by = $1, why = 'the database became a copy: ' || $2, decision = 'skip'
WHERE ended_at IS NULL
RETURNING to_json(h)
