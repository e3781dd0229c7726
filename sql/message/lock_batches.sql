-- The first statement in a batch that met others. Until the end of its transaction, no other such
-- batch of its route runs, in any worker. Waits at most lock_timeout (55P03). $1 group, $2 topic.
-- One row.
SELECT pg_advisory_xact_lock(hashtextextended('hapax batches of ' || $1 || ' ' || $2, 0))
