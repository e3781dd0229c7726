-- seal.sql for a COMMIT that does not wait for the disk: the next checkpoint, which does, makes it
-- durable (guarantees I4). $1 nonce.
SELECT CASE WHEN pg_catalog.current_setting('hapax.claim', true) OPERATOR(pg_catalog.=) $1::pg_catalog.text
            THEN pg_catalog.set_config('hapax.gate', 'sealed', true)
            ELSE hapax.seal($1)::pg_catalog.text END,
       pg_catalog.set_config('synchronous_commit', 'off', true)
