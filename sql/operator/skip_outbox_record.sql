-- An operator's decision: this record is never sent. $1 group, $2 topic, $3 id. No rows.
DELETE FROM hapax.outbox WHERE group_id = $1 AND topic = $2 AND id = $3
