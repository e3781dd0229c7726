-- Which of the rights on handlers' tables this role does not have. $1: such as
-- [{"table": "payments", "privilege": "INSERT"}]. A table that is not there has no privilege in its row.
SELECT DISTINCT to_jsonb(r) FROM (
  SELECT w."table", CASE WHEN found IS NOT NULL THEN w.privilege END AS privilege
  FROM jsonb_to_recordset($1::jsonb) AS w ("table" text, privilege text), to_regclass(w."table") AS found
  WHERE found IS NULL
     OR NOT CASE w.privilege WHEN 'DELETE' THEN has_table_privilege(found, 'DELETE')
                             ELSE has_any_column_privilege(found, w.privilege) END) r
ORDER BY 1
