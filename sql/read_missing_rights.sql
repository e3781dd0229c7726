-- What roles.sql gives a worker and this role does not have. A few rows, as JSON.
SELECT to_json(r) FROM (
  SELECT w.name AS "table", p.privilege
  FROM (VALUES ('idempotency_keys', 'SELECT INSERT UPDATE DELETE'),
               ('checkpoints', 'SELECT INSERT UPDATE'), ('halts', 'SELECT INSERT UPDATE'),
               ('attempts', 'SELECT INSERT UPDATE DELETE'), ('leases', 'SELECT INSERT UPDATE'),
               ('dead_letters', 'SELECT INSERT'), ('incarnation', 'SELECT INSERT'),
               ('store', 'SELECT'), ('schema_migrations', 'SELECT')) AS w (name, privileges),
       unnest(string_to_array(w.privileges, ' ')) AS p (privilege)
  WHERE NOT coalesce(has_table_privilege(to_regclass('hapax.' || w.name), p.privilege), false)) r
