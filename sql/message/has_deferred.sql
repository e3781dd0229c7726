-- Whether a table outside of hapax has a constraint or trigger that waits for COMMIT. No parameters. One row.
SELECT EXISTS (SELECT FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE t.tginitdeferred AND n.nspname <> 'hapax')
