-- Shares the lock of a replay's partition to the end of its transaction, on a route whose key is the
-- position. So a start of the partition waits for the replay. $1 group, $2 topic, $3 partition. One row.
SELECT pg_advisory_xact_lock_shared(hapax.partition_lock($1, $2, $3::int))
