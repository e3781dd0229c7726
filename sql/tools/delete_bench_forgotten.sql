-- What the removal of the keys of `hapax bench` noted, behind delete_bench.sql. $1 the beginning of
-- its scope's name. No rows.
DELETE FROM hapax.forgotten WHERE starts_with(scope, $1)
