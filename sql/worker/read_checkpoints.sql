-- Checkpoint rows as the last owners left them.
-- $1 group, $2 topics, $3 partitions. One row for each that is there. A schema before 15 has no
-- last_record, and shows NULL. `same_topic`: the last halt that an operator has ended so, or 0.
-- `is_of_earlier_run`: nothing was written to the row since this run of the server began.
SELECT c.topic, c.partition, epoch, next_offset, highest, highest_settled, generation, owner,
       key_spec, scope, topic_id, cluster_id, started_runs, start_as,
       to_jsonb(c) ->> 'last_record' AS last_record, coalesce(ended.id, 0) AS same_topic,
       c.updated_at < pg_postmaster_start_time() AS is_of_earlier_run
FROM unnest($2::text[], $3::int[]) AS d (topic, partition)
JOIN hapax.checkpoints c
  ON c.group_id = $1 AND c.topic = d.topic COLLATE "C" AND c.partition = d.partition
LEFT JOIN (SELECT topic, partition, max(id) AS id FROM hapax.halts
           WHERE group_id = $1 AND decision = 'same_topic'
           GROUP BY topic, partition) AS ended
  ON ended.topic = c.topic AND ended.partition = c.partition
