-- Decision recreated: the topic's offsets mean other messages now. A new generation, so that they
-- do not inherit attempts and dead letters of the old ones, and nothing of the old checkpoint.
-- $1 group, $2 topic, $3 partition, $4 scope and $5 generation if there is no checkpoint yet.
-- The worker that starts there may raise it further (worker/log_number.hpp), by the one before it: so
-- once, however often it is decided before that.
-- One row as JSON.
INSERT INTO hapax.checkpoints AS c (group_id, topic, partition, epoch, key_spec, scope, start_as,
  generation)
VALUES ($1, $2, $3, pg_current_xact_id()::text::bigint, '', $4, 'initial', $5)
ON CONFLICT (group_id, topic, partition) DO UPDATE
SET generation = CASE WHEN c.start_as = 'initial' AND c.next_offset IS NULL THEN c.generation
                      ELSE c.generation + 1 END, next_offset = NULL, highest = NULL, highest_settled = NULL,
    start_as = 'initial', key_spec = '', topic_id = NULL, cluster_id = NULL, epoch = c.epoch + 1,
    started_runs = 0, updated_at = now()
RETURNING to_json(c)
