-- Ends dead letters that shall never run; not one whose replay is open, for a worker may run it now.
-- $1 ids, $2 who, $3 why. A row for each that it ended.
UPDATE hapax.dead_letters d
SET ended_at = clock_timestamp(), ended_as = 'discarded', ended_by = $2, ended_why = $3
WHERE d.id = ANY ($1::bigint[]) AND d.ended_at IS NULL
  AND NOT EXISTS (SELECT FROM hapax.replays r WHERE r.dead_letter = d.id AND r.ended_at IS NULL)
RETURNING d.id
