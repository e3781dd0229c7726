-- Cancels the open replays of these dead letters that no worker has claimed.
-- $1 ids, $2 detail. A row for each that it cancelled. Passes over what a run has locked.
UPDATE hapax.replays
SET ended_at = clock_timestamp(), outcome = 'cancelled', detail = $2, claimed_until = NULL
WHERE id IN (
  SELECT id FROM hapax.replays
  WHERE dead_letter = ANY ($1::bigint[]) AND ended_at IS NULL
    AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
  FOR UPDATE SKIP LOCKED)
RETURNING dead_letter
