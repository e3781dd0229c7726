-- How far the log of PostgreSQL is on disk: timeline/position, as 1/0/16B3748.
-- One row; none from a standby.
SELECT concat(('x' || substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8))::bit(32)::bigint,
              '/', pg_current_wal_flush_lsn())
WHERE NOT pg_is_in_recovery()
