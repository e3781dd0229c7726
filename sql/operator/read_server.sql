-- How the server and this role are set, for `hapax check`. `reset_val` is the value after RESET ALL
-- of a handler, from role, database or server. One row, as JSON.
SELECT to_json(r) FROM (
  SELECT current_setting('server_version') AS version,
         current_setting('server_version_num')::int AS version_number,
         pg_is_in_recovery() AS standby,
         current_setting('fsync') AS fsync,
         current_setting('full_page_writes') AS full_page_writes,
         (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit')
           AS synchronous_commit,
         (SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_read_only')
           AS default_read_only,
         (SELECT source FROM pg_settings WHERE name = 'default_transaction_read_only')
           AS default_read_only_by,
         (SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_isolation')
           AS default_isolation,
         (SELECT reset_val FROM pg_settings WHERE name = 'session_replication_role')
           AS replication_role,
         current_setting('max_connections')::int AS max_connections,
         current_setting('superuser_reserved_connections')::int AS reserved_connections,
         u.rolname AS role, u.rolsuper AS superuser, u.rolconnlimit AS role_limit,
         d.datconnlimit AS database_limit, d.datname AS database,
         inet_server_port() AS port, current_setting('is_superuser') = 'on' AS acts_as_superuser,
         (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls,
         pg_has_role(current_user, d.datdba, 'USAGE') AS owns_database
  FROM pg_database d, pg_roles u
  WHERE d.datname = current_database() AND u.rolname = current_user) r
