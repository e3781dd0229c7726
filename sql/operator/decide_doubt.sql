-- Decisions call and as_unknown: what becomes of messages whose calls PostgreSQL may have forgotten.
-- The fence moves, as with each decision.
-- $1 group, $2 topic, $3 partition, $4 the decision. One row of the checkpoint as JSON; none if it is
-- gone.
WITH decided AS (
  INSERT INTO hapax.doubts AS d (group_id, topic, partition, decided) VALUES ($1, $2, $3, $4)
  ON CONFLICT (group_id, topic, partition) DO UPDATE SET decided = EXCLUDED.decided
)
UPDATE hapax.checkpoints c SET epoch = c.epoch + 1, started_runs = 0, updated_at = now()
WHERE group_id = $1 AND topic = $2 AND partition = $3
RETURNING to_json(c)
