-- One process at a time moves the dead letters of a group into the outbox. So they get there in the order
-- of their ids. $1 group. One row. Locks until the end of the transaction; never waits.
SELECT pg_try_advisory_xact_lock(hashtextextended('hapax letters ' || $1, 0)) AS locked
