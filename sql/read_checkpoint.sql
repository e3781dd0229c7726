-- The checkpoint row as the last owner left it.
-- $1 group, $2 topic, $3 partition. One row or none.
SELECT epoch, next_offset, highest, highest_settled, generation, owner, key_spec, scope, topic_id,
       cluster_id, started_runs, start_as
FROM hapax.checkpoints WHERE group_id = $1 AND topic = $2 AND partition = $3
