-- Nothing is to be asked of this batch any more. $1 group, $2 topic, $3 token. No rows.
UPDATE hapax.outbox_batches SET ids = '{}' WHERE group_id = $1 AND topic = $2 AND token = $3::uuid
