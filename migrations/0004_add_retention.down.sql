DROP TABLE hapax.leases;
DROP INDEX hapax.idempotency_keys_by_expiry;
