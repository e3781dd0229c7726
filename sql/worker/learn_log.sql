-- From now on this log has this number. $1 scope, $2 topic, $3 partition, $4 cluster id, $5 topic id
-- or '', $6 generation. No rows.
INSERT INTO hapax.logs (scope, topic, partition, cluster_id, topic_id, generation)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (scope, topic, partition, cluster_id, topic_id) DO UPDATE
SET generation = excluded.generation, updated_at = now()
WHERE hapax.logs.generation <> excluded.generation
