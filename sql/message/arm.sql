-- Opens the seal of a claiming transaction; first after BEGIN READ WRITE, before the claim.
-- $1 nonce. One row. No locks.
SELECT set_config('hapax.claim', $1, true), set_config('hapax.gate', 'arm', true)
