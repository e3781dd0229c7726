-- The completion, last before COMMIT. $1 nonce. Raises HX002 when the claiming transaction is gone.
SELECT hapax.seal($1)
