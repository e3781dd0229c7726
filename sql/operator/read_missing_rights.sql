-- What roles.sql gives a worker and this role does not have; a table or column that is not there yet is
-- the schema's matter. A few rows, as JSON.
SELECT to_json(r) FROM (
  SELECT w.name AS "table", p.privilege
  FROM (VALUES ('idempotency_keys', 'SELECT INSERT UPDATE DELETE'),
               ('checkpoints', 'SELECT INSERT UPDATE'), ('halts', 'SELECT'),
               ('attempts', 'SELECT INSERT UPDATE DELETE'), ('leases', 'SELECT INSERT UPDATE'),
               ('dead_letters', 'SELECT INSERT'), ('incarnation', 'SELECT INSERT'),
               ('position_changes', 'SELECT'), ('replays', 'SELECT'),
               ('logs', 'SELECT INSERT UPDATE'), ('passed', 'SELECT INSERT UPDATE'),
               ('outbox', 'SELECT INSERT DELETE'), ('outbox_halts', 'SELECT INSERT'),
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
  SELECT w.name, CASE WHEN bool_and(p.missing) THEN w.privilege
                      ELSE w.privilege || ' of ' || string_agg(a.attname, ', ' ORDER BY a.attnum)
                                                    FILTER (WHERE p.missing) END
  FROM (VALUES ('dead_letters', 'UPDATE', 'ended_at ended_as ended_by ended_why published_at'),
               ('halts', 'INSERT', 'group_id topic partition whole_route generation kafka_offset '
                                   'reason detail halted_by'),
               ('outbox_halts', 'UPDATE', 'reason detail halted_by'),
               ('position_changes', 'INSERT', 'group_id topic partition generation from_offset '
                                              'to_offset cause who why'),
               ('replays', 'UPDATE', 'runs claimed_by claimed_until next_try last_error sqlstate '
                                     'ended_at outcome detail key tenant token'))
         AS w (name, privilege, columns)
  JOIN pg_attribute a ON a.attrelid = to_regclass('hapax.' || w.name)
    AND a.attname = ANY (string_to_array(w.columns, ' ')),
  LATERAL (SELECT NOT has_column_privilege(a.attrelid, a.attnum, w.privilege) AS missing) p
  GROUP BY w.name, w.privilege HAVING bool_or(p.missing)) r
