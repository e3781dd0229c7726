-- Right after partitions were taken: those of which an earlier owner has a transaction open, which may
-- settle offsets. None can begin any more, because the epoch was raised before. Only for routes whose
-- key is the position.
-- $1 group, $2 topics, $3 partitions. One row each. Waits for no lock; takes the locks of the others
-- for this short transaction.
SELECT topic, partition FROM unnest($2::text[], $3::int[]) AS d (topic, partition)
WHERE NOT pg_try_advisory_xact_lock(hapax.partition_lock($1, d.topic, d.partition))
