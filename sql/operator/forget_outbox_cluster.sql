-- The group's published records may go to another Kafka cluster. $1 group. One row with the old one's id,
-- if any was noted.
DELETE FROM hapax.outbox_clusters WHERE group_id = $1 COLLATE "C" RETURNING cluster_id
