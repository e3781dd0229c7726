-- Kafka has these dead letters. $1 ids. No rows. Locks them for this short transaction.
UPDATE hapax.dead_letters SET published_at = clock_timestamp()
WHERE id = ANY ($1::bigint[]) AND published_at IS NULL
