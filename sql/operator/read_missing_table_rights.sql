-- Which of the rights on handlers' tables this role does not have. $1: such as
-- [{"table": "payments", "privilege": "INSERT"}]. A table that is not there has no privilege in its row.
-- Precondition: the search_path is that of handlers. So no function and no operator is looked up in it.
SELECT DISTINCT pg_catalog.to_jsonb(r) FROM (
  SELECT w."table", CASE WHEN found.oid IS NOT NULL THEN w.privilege END AS privilege
  FROM pg_catalog.jsonb_to_recordset($1::pg_catalog.jsonb) AS w ("table" pg_catalog.text, privilege pg_catalog.text),
    LATERAL (SELECT pg_catalog.to_regclass(w."table")::pg_catalog.oid AS oid) AS found
  WHERE found.oid IS NULL
     OR NOT CASE w.privilege WHEN 'DELETE' THEN pg_catalog.has_table_privilege(found.oid, 'DELETE'::pg_catalog.text)
                             ELSE pg_catalog.has_any_column_privilege(found.oid, w.privilege) END) r
ORDER BY 1
