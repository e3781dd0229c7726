-- Whether a function of one of these names may leave something in its session. All but PostgreSQL's own
-- may. Of its own those may that exist to do it, and those that run a text as SQL. $1 names.
-- One row. No locks.
SELECT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE proname = ANY ($1::pg_catalog.text[]) AND
  (pronamespace <> 'pg_catalog'::pg_catalog.regnamespace OR
   (proname ~ '^(set_config|setseed|pg_(try_)?advisory_|pg_replication_origin_|pg_create_.*_slot|query_to_xml|ts_stat|ts_rewrite)'
    AND proname !~ 'advisory_xact_')))
