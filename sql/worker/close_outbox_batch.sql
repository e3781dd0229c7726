-- Nothing is to be asked of this batch any more. $1 group, $2 topic, $3 token, $4 whether its topic
-- halts, because Kafka does not tell what became of it. Such a batch follows itself, as no other does.
-- No rows.
UPDATE hapax.outbox_batches
SET ids = '{}',
    follows = CASE WHEN $4 THEN token WHEN follows = token THEN gen_random_uuid() ELSE follows END
WHERE group_id = $1 AND topic = $2 AND token = $3::uuid
