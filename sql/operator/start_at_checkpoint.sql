-- Decision same_topic: go on at the checkpoint; the topic's and cluster's ids are learned again.
-- $1 group, $2 topic, $3 partition. One row as JSON; none if no start was ever agreed.
UPDATE hapax.checkpoints c
SET start_as = 'checkpoint', topic_id = NULL, cluster_id = NULL, last_record = NULL, epoch = c.epoch + 1,
    started_runs = 0, updated_at = now()
WHERE group_id = $1 AND topic = $2 AND partition = $3 AND next_offset IS NOT NULL
RETURNING to_json(c)
