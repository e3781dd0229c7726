-- Notes the Kafka cluster that a group's published records go to, if none is noted. No rows.
-- $1 group, $2 the cluster's id.
INSERT INTO hapax.outbox_clusters (group_id, cluster_id) VALUES ($1, $2) ON CONFLICT DO NOTHING
