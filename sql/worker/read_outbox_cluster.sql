-- The Kafka cluster that a group's published records go to. $1 group. No row if none is noted.
SELECT cluster_id FROM hapax.outbox_clusters WHERE group_id = $1 COLLATE "C"
