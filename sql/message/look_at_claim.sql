-- Before the statements of the next message of a batch. $1 nonce. Raises HX002 when the claiming
-- transaction is gone, and so PostgreSQL does not run what follows. One row. No locks.
SELECT CASE WHEN pg_catalog.current_setting('hapax.claim', true) OPERATOR(pg_catalog.=) $1::pg_catalog.text
            THEN '' ELSE hapax.seal($1)::pg_catalog.text END
