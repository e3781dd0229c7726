-- Takes a partition: from here on every write of an older owner misses. Made when it is not there.
-- $1 group, $2 topic, $3 partition, $4 owner, $5 key spec, $6 scope, $7 the epoch that was read
-- (0: no row). One row, or none when somebody took it meanwhile: the epoch, and the runs that will
-- have been started once its start is agreed. A taker that the group takes it from before that has
-- run nothing, so it is not counted here.
-- Locks the row for this short transaction.
INSERT INTO hapax.checkpoints AS c (group_id, topic, partition, owner, key_spec, scope, epoch)
VALUES ($1, $2, $3, $4, $5, $6, 1)
ON CONFLICT (group_id, topic, partition) DO UPDATE
SET owner = $4, epoch = c.epoch + 1, updated_at = now()
WHERE c.epoch = $7
RETURNING epoch, started_runs + 1
