-- A group that is gone for good, or one topic of it. $1 group, $2 topic or NULL (all). Its checkpoints, as JSON.
-- Without the times that it noted: a group that comes under this name later must note its own.
WITH noted AS (
  DELETE FROM hapax.passed WHERE group_id = $1 AND ($2::text IS NULL OR topic = $2)
), doubts AS (
  DELETE FROM hapax.doubts WHERE group_id = $1 AND ($2::text IS NULL OR topic = $2)
), settled AS (
  DELETE FROM hapax.positions WHERE group_id = $1 AND ($2::text IS NULL OR topic = $2)
), gone AS (
  DELETE FROM hapax.checkpoints WHERE group_id = $1 AND ($2::text IS NULL OR topic = $2)
  RETURNING *
)
SELECT to_json(gone) FROM gone ORDER BY topic, partition
