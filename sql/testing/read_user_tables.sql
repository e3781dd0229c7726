-- The tables that are not hapax's, for the test kit. One row each, with the name. A JSON object has the
-- columns whose values a sequence or gen_random_uuid() draws, and those that refer to such a column. It
-- names the source of each, alike in each database. A JSON array has the columns of times.
WITH RECURSIVE leads (relation, number, to_relation, to_number) AS (
  SELECT f.confrelid, f.confkey[i], f.conrelid, f.conkey[i]
  FROM pg_constraint f CROSS JOIN LATERAL generate_subscripts(f.confkey, 1) AS i
  WHERE f.contype = 'f'
  UNION ALL
  -- A partition takes its numbers from its parent's sequence.
  SELECT i.inhparent, p.attnum, i.inhrelid, c.attnum
  FROM pg_inherits i JOIN pg_attribute p ON p.attrelid = i.inhparent
  JOIN pg_attribute c ON c.attrelid = i.inhrelid AND c.attname = p.attname
  WHERE p.attnum > 0 AND NOT p.attisdropped
), drawn (relation, number, source) AS (
  SELECT a.attrelid, a.attnum, format('%s.%I', a.attrelid::regclass, a.attname)
  FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE a.attnum > 0 AND NOT a.attisdropped
    AND (a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) ~ '\mnextval\('
         OR EXISTS (SELECT FROM pg_depend s JOIN pg_class q ON q.oid = s.refobjid
                    WHERE s.classid = 'pg_attrdef'::regclass AND s.objid = d.oid
                      AND s.refclassid = 'pg_class'::regclass AND q.relkind = 'S'))
  UNION
  SELECT to_relation, to_number, source FROM drawn JOIN leads USING (relation, number)
), columns (relation, name, source, is_time) AS (
  SELECT a.attrelid, a.attname,
         CASE WHEN coalesce(nullif(t.typbasetype, 0), t.oid) = 'uuid'::regtype THEN 'uuid'
              ELSE (SELECT min(source) FROM drawn
                    WHERE relation = a.attrelid AND number = a.attnum) END,
         t.typcategory = 'D'
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
  WHERE a.attnum > 0 AND NOT a.attisdropped
)
SELECT format('%I.%I', n.nspname, c.relname),
       coalesce(json_object_agg(k.name, k.source) FILTER (WHERE k.source IS NOT NULL), '{}'),
       coalesce(json_agg(k.name) FILTER (WHERE k.is_time), '[]')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN columns k ON k.relation = c.oid
WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'hapax',
    'hapax_testing', 'hapax_saved')
  AND n.nspname NOT LIKE 'pg\_t%'
GROUP BY 1
ORDER BY 1
