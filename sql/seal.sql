-- The completion, last before COMMIT. $1 nonce. Raises HX002 when the claiming transaction is gone.
-- hapax.seal() says the same, and is called only to refuse: inline, it is a message's twentieth cheaper.
SELECT CASE WHEN pg_catalog.current_setting('hapax.claim', true) OPERATOR(pg_catalog.=) $1::pg_catalog.text
            THEN pg_catalog.set_config('hapax.gate', 'sealed', true)
            ELSE hapax.seal($1)::pg_catalog.text END
