-- The state of a group. $1 group. A row for each partition, as JSON.
SELECT to_json(r) FROM (
  SELECT topic, partition, owner, epoch, next_offset, highest, generation, start_as, started_runs,
         scope, updated_at, extract(epoch FROM now() - updated_at)::bigint AS age_seconds
  FROM hapax.checkpoints WHERE group_id = $1 ORDER BY topic, partition) r
