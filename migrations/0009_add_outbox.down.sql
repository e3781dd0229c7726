-- Refuses while records wait, as they would be lost.
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
