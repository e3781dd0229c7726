-- What roles.sql gives a worker and this role does not have; a table that is not there yet is the
-- schema's matter. A few rows, as JSON.
SELECT to_json(r) FROM (
  SELECT w.name AS "table", p.privilege
  FROM (VALUES ('idempotency_keys', 'SELECT INSERT UPDATE DELETE'),
               ('checkpoints', 'SELECT INSERT UPDATE'), ('halts', 'SELECT INSERT UPDATE'),
               ('attempts', 'SELECT INSERT UPDATE DELETE'), ('leases', 'SELECT INSERT UPDATE'),
               ('dead_letters', 'SELECT INSERT UPDATE'), ('incarnation', 'SELECT INSERT'),
               ('position_changes', 'SELECT INSERT'), ('replays', 'SELECT UPDATE'),
               ('logs', 'SELECT INSERT UPDATE'), ('passed', 'SELECT INSERT UPDATE'),
               ('outbox', 'SELECT INSERT DELETE'), ('outbox_halts', 'SELECT INSERT UPDATE'),
               ('doubts', 'SELECT INSERT UPDATE'), ('holders', 'SELECT INSERT UPDATE DELETE'),
               ('outbox_batches', 'SELECT INSERT UPDATE'), ('positions', 'SELECT INSERT DELETE'),
               ('store', 'SELECT'), ('schema_migrations', 'SELECT'), ('forgotten', 'SELECT'),
               ('epochs', 'SELECT'), ('outbox_clusters', 'SELECT INSERT'), ('outbox_counts', 'SELECT')) AS w (name, privileges),
       to_regclass('hapax.' || w.name) AS found,
       unnest(string_to_array(w.privileges, ' ')) AS p (privilege)
  WHERE found IS NOT NULL
    AND NOT CASE p.privilege WHEN 'DELETE' THEN has_table_privilege(found, 'DELETE')
                             ELSE has_any_column_privilege(found, p.privilege) END
  UNION ALL
  SELECT 'dead_letters', 'UPDATE of published_at' FROM pg_attribute
  WHERE attrelid = to_regclass('hapax.dead_letters') AND attname = 'published_at'
    AND NOT has_column_privilege(attrelid, attnum, 'UPDATE')) r
