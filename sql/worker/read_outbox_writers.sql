-- The transactions that have drawn ids of the outbox and have not ended, but for this one. They hold
-- the table's lock from before they draw an id until after their rows are visible. A few rows.
SELECT DISTINCT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND relation = 'hapax.outbox'::regclass AND mode = 'RowExclusiveLock'
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND granted AND pid IS DISTINCT FROM pg_backend_pid()
