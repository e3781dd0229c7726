-- Claims the next replay that is due and not claimed, of these topics; a route that is halted
-- runs none. Committed by itself, so that a run that kills the process counts.
-- $1 group, $2 topics, $3 worker, $4 lease in seconds. One row or none: with the runs begun, this one
-- included, and whether the run before left its claim behind.
-- Locks the row; passes over what a run has locked, though its lease may have run out.
WITH next AS (
  SELECT r.id, d.topic, r.claimed_until IS NOT NULL AS abandoned
  FROM hapax.replays r JOIN hapax.dead_letters d ON d.id = r.dead_letter
  WHERE r.ended_at IS NULL AND r.next_try <= clock_timestamp()
    AND (r.claimed_until IS NULL OR r.claimed_until < clock_timestamp())
    AND d.group_id = $1 AND d.topic = ANY ($2::text[])
    AND NOT EXISTS (SELECT FROM hapax.halts h
                    WHERE h.group_id = $1 AND h.topic = d.topic AND h.whole_route
                      AND h.ended_at IS NULL)
  ORDER BY r.dead_letter LIMIT 1 FOR UPDATE OF r SKIP LOCKED)
UPDATE hapax.replays r
SET runs = r.runs + 1, claimed_by = $3,
    claimed_until = clock_timestamp() + make_interval(secs => $4)
FROM next WHERE r.id = next.id
RETURNING r.id, r.dead_letter, next.topic, r.runs, next.abandoned
