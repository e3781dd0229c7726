-- What this role may order, as operator.psql grants it, and whether it may read the log of orders.
-- NULL of a table that is not there is no right.
-- No parameters. One row, as JSON.
SELECT to_json(r) FROM (
  SELECT current_user AS role, logs AND resumes AS resume, logs AND ends AND replays AS dead,
         logs AND removes AS outbox, logs AND ends AND replays AND decides AS outside,
         logs AND owns AS database, reads_log
  FROM (SELECT has_any_column_privilege('hapax.operator_log', 'INSERT') AS logs,
               has_table_privilege('hapax.operator_log', 'SELECT') AS reads_log,
               has_any_column_privilege('hapax.halts', 'UPDATE')
                 AND has_table_privilege('hapax.checkpoints', 'INSERT')
                 AND has_table_privilege('hapax.checkpoints', 'UPDATE')
                 AND coalesce(has_table_privilege(to_regclass('hapax.logs'), 'UPDATE'), true) AS resumes,
               has_column_privilege('hapax.dead_letters', 'ended_at', 'UPDATE') AS ends,
               has_any_column_privilege('hapax.replays', 'INSERT')
                 AND has_any_column_privilege('hapax.replays', 'UPDATE') AS replays,
               has_any_column_privilege('hapax.idempotency_keys', 'UPDATE') AS decides,
               coalesce(has_table_privilege(to_regclass('hapax.outbox'), 'DELETE')
                 AND has_any_column_privilege(to_regclass('hapax.outbox_halts'), 'UPDATE'), false)
                 AS removes,
               pg_has_role(current_user, (SELECT relowner FROM pg_class
                                          WHERE oid = 'hapax.store'::regclass), 'USAGE') AS owns) p) r
