-- How far the log of PostgreSQL is on disk: database/timeline/position, as
-- 7395012345678901234.16384/1/0/16B3748. One row; none from a standby.
SELECT concat((SELECT system_identifier FROM pg_control_system()), '.', d.oid, '/',
              ('x' || substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8))::bit(32)::bigint,
              '/', pg_current_wal_flush_lsn())
FROM pg_database d WHERE d.datname = current_database() AND NOT pg_is_in_recovery()
