-- The epochs of what a worker took last. $1 group, $2 worker. A row for each partition.
SELECT topic, partition, epoch FROM hapax.checkpoints WHERE group_id = $1 AND owner = $2
