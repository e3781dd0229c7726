-- Shows that a relay's session lives, as take_outbox_lease.sql asks. $1 the relay's name.
-- Locks until the session ends. An older session of the same relay may still have it, too.
SELECT pg_advisory_lock_shared(hashtextextended('hapax relay ' || $1, 0))
