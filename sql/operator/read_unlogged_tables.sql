-- Tables of anybody that this role may write and that a crash of PostgreSQL empties. 20 rows at most,
-- as JSON.
SELECT to_json(r) FROM (
  SELECT c.oid::regclass::text AS name
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'r' AND c.relpersistence = 'u' AND n.nspname <> 'hapax'
    AND has_schema_privilege(n.oid, 'USAGE')
    AND (has_any_column_privilege(c.oid, 'INSERT, UPDATE') OR has_table_privilege(c.oid, 'DELETE'))
  ORDER BY 1 LIMIT 20) r
