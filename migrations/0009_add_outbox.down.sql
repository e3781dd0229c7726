ALTER TABLE hapax.leases DROP COLUMN epoch;
DROP TABLE hapax.outbox_halts;
DROP TABLE hapax.outbox;
