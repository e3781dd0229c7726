-- Decision accept_kafka: a checkpoint that starts at the group's offset in Kafka.
-- $1 group, $2 topic, $3 partition, $4 scope. Its generation is as in
-- take_partitions.sql. One row as JSON; none if there is a checkpoint.
INSERT INTO hapax.checkpoints AS c (group_id, topic, partition, epoch, key_spec, scope, start_as,
  generation)
VALUES ($1, $2, $3, pg_current_xact_id()::text::bigint, '', $4, 'kafka',
  coalesce((SELECT max(generation) FROM hapax.checkpoints WHERE group_id = $1 AND topic = $2),
    1 + greatest((SELECT max(generation) FROM hapax.dead_letters WHERE group_id = $1 AND topic = $2),
                 (SELECT max(generation) FROM hapax.attempts WHERE group_id = $1 AND topic = $2),
                 (SELECT max(generation) FROM hapax.halts WHERE group_id = $1 AND topic = $2),
                 (SELECT max(generation) FROM hapax.position_changes
                  WHERE group_id = $1 AND topic = $2)), 1))
ON CONFLICT (group_id, topic, partition) DO UPDATE
SET start_as = 'kafka', epoch = c.epoch + 1, started_runs = 0, updated_at = now()
WHERE c.next_offset IS NULL
RETURNING to_json(c)
