-- First in a batch that ran into others: until the end of its transaction no other one of its route
-- that did runs, in any worker. Waits at most lock_timeout (55P03). $1 group, $2 topic. One row.
SELECT pg_advisory_xact_lock(hashtextextended('hapax batches of ' || $1 || ' ' || $2, 0))
