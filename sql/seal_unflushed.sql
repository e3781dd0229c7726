-- seal.sql for a COMMIT that does not wait for the disk: the next checkpoint, which does, makes it
-- durable (guarantees I4). $1 nonce.
SELECT hapax.seal($1), set_config('synchronous_commit', 'off', true)
