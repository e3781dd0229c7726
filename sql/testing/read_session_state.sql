-- What a handler can leave in its session, one line each. The test kit compares it with the state
-- of a new session.
SELECT format('the setting %s = %L', name, setting) FROM pg_catalog.pg_settings
WHERE source = 'session' AND name NOT LIKE 'hapax.%'
UNION ALL
SELECT format('the temporary table or view %I', relname) FROM pg_catalog.pg_class
WHERE relnamespace = pg_catalog.pg_my_temp_schema() AND relkind IN ('r', 'p', 'v')
UNION ALL
SELECT format('LISTEN %I', channel) FROM pg_catalog.pg_listening_channels() AS channel
UNION ALL
SELECT format('the advisory lock (%s, %s)', classid, objid) FROM pg_catalog.pg_locks
WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid()
UNION ALL
SELECT format('the prepared statement %I', name) FROM pg_catalog.pg_prepared_statements
WHERE name NOT LIKE 'hapax\_%'
UNION ALL
SELECT format('the cursor %I', name) FROM pg_catalog.pg_cursors WHERE is_holdable
UNION ALL
SELECT format('the role %I', current_user) WHERE current_user <> session_user
