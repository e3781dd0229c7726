-- Opens the seal of the claiming transaction (as arm.sql) and takes the offsets of a batch, for a
-- route whose key is the position. Callers sort by partition; no partition twice.
-- $1 nonce, $2 group, $3 topic, $4 partitions, $5 generations, $6 epochs (0: no worker has it), $7 the highest
-- offset of each, $8 how far its others are below that (an array as text, or NULL).
-- One row for each partition that no other worker and no operator took. Shares their locks.
SELECT partition FROM hapax.claim_positions($1, $2, $3, $4::int[], $5::int[], $6::bigint[],
  $7::bigint[], $8::text[]) AS partition
