-- Whether the operation is at rest: it ended behind steps of its call that are done, and a replay or
-- another message goes on. `is_letter`: the message is a dead letter.
-- $1 key, $2 scope, $3 tenant, $4 group, $5 topic, $6 generation, $7 partition, $8 offset. One row or none.
SELECT EXISTS (SELECT FROM hapax.dead_letters
               WHERE group_id = $4 AND topic = $5 AND generation = $6 AND partition = $7
                 AND kafka_offset = $8) AS is_letter
FROM hapax.idempotency_keys
WHERE key = $1 AND scope = $2 AND tenant = $3 AND status = 'started' AND holder IS NULL AND error IS NOT NULL
