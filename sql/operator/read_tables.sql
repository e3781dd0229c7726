-- hapax's tables, how each is stored (p logged, u unlogged) and whether this role owns it. A few
-- rows, as JSON.
SELECT to_json(r) FROM (
  SELECT c.relname AS name, c.relpersistence AS persistence,
         pg_has_role(current_user, c.relowner, 'USAGE') AS owned
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = 'hapax' AND c.relkind = 'r' ORDER BY c.relname) r
