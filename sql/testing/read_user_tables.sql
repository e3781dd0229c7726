-- The tables that are not hapax's, for the test kit. One row each: the name, and as JSON the
-- columns whose values come from a sequence or refer to such a column. A rollback leaves a gap
-- there.
WITH RECURSIVE drawn (relation, number) AS (
  SELECT a.attrelid, a.attnum
  FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE a.attnum > 0 AND NOT a.attisdropped
    AND (a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%')
  UNION
  SELECT f.conrelid, f.conkey[i]
  FROM drawn JOIN pg_constraint f ON f.contype = 'f' AND f.confrelid = drawn.relation
  CROSS JOIN LATERAL generate_subscripts(f.confkey, 1) AS i
  WHERE f.confkey[i] = drawn.number
)
SELECT format('%I.%I', n.nspname, c.relname),
       (SELECT coalesce(json_agg(a.attname), '[]') FROM drawn JOIN pg_attribute a
          ON a.attrelid = drawn.relation AND a.attnum = drawn.number WHERE drawn.relation = c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'hapax',
    'hapax_testing', 'hapax_saved')
  AND n.nspname NOT LIKE 'pg\_t%'
ORDER BY 1
