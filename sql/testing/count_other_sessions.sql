-- Sessions of this database that are not the test kit's.
-- $1 the application name of the kit's.
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND application_name <> $1
