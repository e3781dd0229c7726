-- Refuses while records wait, as they would be lost.
-- Locked first: a row whose COMMIT comes meanwhile must be seen.
LOCK TABLE hapax.outbox IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
  IF EXISTS (SELECT FROM hapax.outbox) THEN
    RAISE EXCEPTION 'published records or dead letters wait in hapax.outbox'
      USING HINT = 'See `hapax outbox list`: let a worker or `hapax relay` send them.';
  END IF;
END $$;
ALTER TABLE hapax.leases DROP COLUMN epoch;
DROP TABLE hapax.outbox_halts;
DROP TABLE hapax.outbox;
