-- These dead letters are in the outbox. $1 ids. No rows.
UPDATE hapax.dead_letters SET published_at = clock_timestamp()
WHERE id = ANY ($1::bigint[]) AND published_at IS NULL
