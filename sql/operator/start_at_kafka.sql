-- Decision accept_kafka: a checkpoint that starts at the group's offset in Kafka.
-- $1 group, $2 topic, $3 partition, $4 scope. One row as JSON; none if there is a checkpoint.
INSERT INTO hapax.checkpoints AS c (group_id, topic, partition, epoch, key_spec, scope, start_as)
VALUES ($1, $2, $3, 1, '', $4, 'kafka')
ON CONFLICT (group_id, topic, partition) DO UPDATE
SET start_as = 'kafka', epoch = c.epoch + 1, started_runs = 0, updated_at = now()
WHERE c.next_offset IS NULL
RETURNING to_json(c)
