-- The completion, last before COMMIT. $1 nonce. Raises HX002 when the claiming transaction is gone.
-- hapax.seal() does the same, and is called only to refuse: inline, this saves a twentieth of a
-- message's time.
SELECT CASE WHEN pg_catalog.current_setting('hapax.claim', true) OPERATOR(pg_catalog.=) $1::pg_catalog.text
            THEN pg_catalog.set_config('hapax.gate', 'sealed', true)
            ELSE hapax.seal($1)::pg_catalog.text END
