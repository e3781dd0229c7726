-- Each run of an INSERT parses the expressions of a table's CHECK constraints again. For one message
-- that was a ninth of what PostgreSQL computes. Only hapax writes these columns.

ALTER TABLE hapax.idempotency_keys DROP CONSTRAINT idempotency_keys_status_check;
ALTER TABLE hapax.outbox_counts DROP CONSTRAINT outbox_counts_what_check;
