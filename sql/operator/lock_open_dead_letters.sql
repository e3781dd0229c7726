-- Of these dead letters those that are open, so that no other operator orders, cancels or discards
-- them meanwhile. $1 ids. A row for each; locks it until the end of the transaction, in order. No
-- run of a
-- replay waits for it but at its end.
SELECT id FROM hapax.dead_letters WHERE id = ANY ($1::bigint[]) AND ended_at IS NULL
ORDER BY id FOR NO KEY UPDATE
