-- Takes partitions: from here on every write of an older owner misses. Rows that are not there are
-- made.
-- $1 group, $2 owner, $3 topics, $4 partitions, $5 key specs, $6 scopes, $7 the epochs that were read
-- (0: no row). One row for each that was not taken meanwhile: the epoch, and the runs that will
-- have been started once its start is agreed. A taker that the group takes it from before that has
-- run nothing, so it is not counted here.
-- Locks the rows for this short transaction; callers sort by topic, partition.
INSERT INTO hapax.checkpoints AS c (group_id, topic, partition, owner, key_spec, scope, epoch)
SELECT $1, d.topic, d.partition, $2, d.key_spec, d.scope, d.epoch + 1
FROM unnest($3::text[], $4::int[], $5::text[], $6::text[], $7::bigint[])
  AS d (topic, partition, key_spec, scope, epoch)
ON CONFLICT (group_id, topic, partition) DO UPDATE
SET owner = excluded.owner, epoch = excluded.epoch, updated_at = now()
WHERE c.epoch = excluded.epoch - 1
RETURNING topic, partition, epoch, started_runs + 1 AS started_runs
