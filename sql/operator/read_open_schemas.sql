-- Schemas that handlers' statements search, and in which any role may create functions and operators.
-- Precondition: the search_path is that of handlers. So no function and no operator is looked up in it.
-- Rows as JSON.
SELECT pg_catalog.to_json(r) FROM (
  SELECT n.nspname AS name
  FROM pg_catalog.pg_namespace n, pg_catalog.unnest(pg_catalog.current_schemas(false)) AS path(name),
    LATERAL pg_catalog.aclexplode(n.nspacl) AS right_
  WHERE n.nspname OPERATOR(pg_catalog.=) path.name AND right_.grantee OPERATOR(pg_catalog.=) 0::pg_catalog.oid
    AND right_.privilege_type OPERATOR(pg_catalog.=) 'CREATE'::pg_catalog.text
  ORDER BY 1) r
