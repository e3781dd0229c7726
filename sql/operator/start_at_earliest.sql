-- Decision earliest: what Kafka deleted is given up, the rest runs. `highest` stays, so that I8 guards;
-- if there is no checkpoint yet, nothing does.
-- $1 group, $2 topic, $3 partition, $4 scope (if there is no checkpoint yet). Its generation is as in
-- take_partitions.sql. One row as JSON.
INSERT INTO hapax.checkpoints AS c (group_id, topic, partition, epoch, key_spec, scope, start_as,
  generation)
VALUES ($1, $2, $3, pg_current_xact_id()::text::bigint, '', $4, 'earliest',
  coalesce((SELECT max(generation) FROM hapax.checkpoints WHERE group_id = $1 AND topic = $2),
    1 + greatest((SELECT max(generation) FROM hapax.dead_letters WHERE group_id = $1 AND topic = $2),
                 (SELECT max(generation) FROM hapax.attempts WHERE group_id = $1 AND topic = $2),
                 (SELECT max(generation) FROM hapax.halts WHERE group_id = $1 AND topic = $2),
                 (SELECT max(generation) FROM hapax.position_changes
                  WHERE group_id = $1 AND topic = $2)), 1))
ON CONFLICT (group_id, topic, partition) DO UPDATE
SET start_as = 'earliest', epoch = c.epoch + 1, started_runs = 0, updated_at = now()
RETURNING to_json(c)
