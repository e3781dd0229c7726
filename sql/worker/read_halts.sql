-- What stands halted in a group.
-- $1 group. Rows by topic, partition.
SELECT id, topic, partition, whole_route, generation, kafka_offset, reason, detail, since, halted_by
FROM hapax.halts WHERE group_id = $1 AND ended_at IS NULL ORDER BY topic, partition
