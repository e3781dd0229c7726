-- Opens the seal of the claiming transaction (as arm.sql) and takes one offset of a partition, for a
-- route whose key is the position.
-- $1 nonce, $2 group, $3 topic, $4 partition, $5 generation, $6 epoch (0: no worker has it), $7 offset,
-- $8 whether an earlier transaction of this owner may have settled it, $9 lock_timeout of this
-- statement, and $10 of the transaction behind it.
-- One row: 'taken', 'fenced' or 'settled'. Shares the partition's lock, or takes it if $8. Waits for
-- a worker that takes the partition, and if $8 for all that share it, at most $9 (55P03).
SELECT set_config('lock_timeout', $9, true),
       hapax.claim_position($1, $2, $3, $4::int, $5::int, $6::bigint, $7::bigint, $8::boolean) AS claimed,
       set_config('lock_timeout', $10, true)
