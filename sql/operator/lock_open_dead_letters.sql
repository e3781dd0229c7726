-- Of these dead letters those that are open, so that no other operator orders, cancels or discards
-- them meanwhile. $1 ids. A row for each; locks it until the end of the transaction, in order. No run
-- of a replay waits for it but at its end. `without_bytes`: as lock_replay.sql.
SELECT id, coalesce(other->>'bytes_kept', '') = 'false'
             OR payload IS NULL AND message_key IS NULL AND header_names = '{}'
                AND position(' (the message itself could not be kept: ' IN error) > 0 AS without_bytes
FROM hapax.dead_letters WHERE id = ANY ($1::bigint[]) AND ended_at IS NULL
ORDER BY id FOR NO KEY UPDATE
