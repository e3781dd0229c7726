-- A message that is a dead letter was run again on purpose, and was given up on again. Its key was
-- forgotten, or by position an I8 halt was ended with `run`. Its letter is open again. The newer error
-- stands in hapax.attempts, because the letter's row keeps the first one. It counts as a failure there.
-- next_try is before last_at: no try is to come (may_have_run_since.sql).
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset, $6 error, $7 SQLSTATE or NULL,
-- $8 handler, $9 attempts. No rows.
WITH again AS (
  UPDATE hapax.dead_letters
  SET ended_at = NULL, ended_as = NULL, ended_by = NULL, ended_why = NULL
  WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4 AND kafka_offset = $5
  RETURNING 1)
INSERT INTO hapax.attempts AS a (group_id, topic, generation, partition, kafka_offset, count,
  last_error, sqlstate, handler, next_try)
SELECT $1, $2, $3, $4, $5, greatest($9, 1), $6, $7, $8, now() - interval '1 s' FROM again
ON CONFLICT (group_id, topic, generation, partition, kafka_offset) DO UPDATE
SET last_error = excluded.last_error, sqlstate = excluded.sqlstate, handler = excluded.handler,
    last_at = now(), next_try = excluded.next_try, count = greatest(a.count, 1)
