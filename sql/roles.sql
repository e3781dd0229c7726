-- Rights of the worker role, run by the owner (or a superuser) after `hapax migrate up`:
--   psql -v ON_ERROR_STOP=1 -v worker=hapax_worker -f roles.sql

-- The worker role can claim, complete and account. It cannot change the schema, rewrite history or
-- forget it. Give your handler's tables to it beside these. It is one transaction, so that a running
-- worker misses no right meanwhile.

BEGIN READ WRITE;
-- Outside hapax's own BEGIN READ WRITE nothing can be written. What a handler writes after a ROLLBACK of
-- its own fails with 25006; it would commit by itself otherwise. Set on the role, because that survives
-- RESET ALL and needs no connection option, so it works through a pooler too.
ALTER ROLE :"worker" SET default_transaction_read_only = on;

GRANT USAGE ON SCHEMA hapax TO :"worker";
GRANT SELECT, INSERT, UPDATE ON hapax.idempotency_keys, hapax.checkpoints,
  hapax.attempts, hapax.leases, hapax.logs, hapax.passed, hapax.doubts TO :"worker";
GRANT DELETE ON hapax.idempotency_keys, hapax.attempts TO :"worker";
GRANT SELECT, INSERT ON hapax.dead_letters, hapax.incarnation TO :"worker";
GRANT UPDATE (ended_at, ended_as, ended_by, ended_why, published_at) ON hapax.dead_letters TO :"worker";
-- What an operator decides, and when, is no worker's to write. Wider rights of an earlier roles.sql go.
REVOKE INSERT, UPDATE ON hapax.halts, hapax.replays, hapax.position_changes FROM :"worker";
GRANT SELECT ON hapax.halts, hapax.replays, hapax.position_changes TO :"worker";
GRANT INSERT (group_id, topic, partition, whole_route, generation, kafka_offset, reason, detail,
  halted_by) ON hapax.halts TO :"worker";
GRANT UPDATE (runs, claimed_by, claimed_until, next_try, last_error, sqlstate, ended_at, outcome,
  detail, key, tenant, token) ON hapax.replays TO :"worker";
GRANT INSERT (group_id, topic, partition, generation, from_offset, to_offset, cause, who, why)
  ON hapax.position_changes TO :"worker";
GRANT SELECT, INSERT, DELETE ON hapax.outbox TO :"worker";
GRANT SELECT, INSERT ON hapax.outbox_halts, hapax.outbox_clusters TO :"worker";
GRANT UPDATE (reason, detail, halted_by) ON hapax.outbox_halts TO :"worker";
GRANT SELECT, INSERT, UPDATE ON hapax.outbox_batches TO :"worker";
GRANT SELECT, INSERT, UPDATE, DELETE ON hapax.holders TO :"worker";
GRANT SELECT, INSERT, DELETE ON hapax.positions TO :"worker";
GRANT SELECT ON hapax.store, hapax.schema_migrations, hapax.forgotten, hapax.epochs, hapax.outbox_counts TO :"worker";
COMMIT;
