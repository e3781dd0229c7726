-- Takes partitions: from here on every write of an older owner misses. Rows that are not there are
-- made.
-- $1 group, $2 owner, $3 topics, $4 partitions, $5 key specs, $6 scopes, $7 the epochs that were read
-- (0: no row). One row for each that was not taken meanwhile: the epoch, and the runs that will
-- have been started once its start is agreed. A taker that the group takes it from before that has
-- run nothing, so it is not counted here.
-- A group that was forgotten has left letters, attempts and decisions. Its next rows have a generation
-- of their own, so that these mean no message of a topic that was made again since.
-- Locks the rows for this short transaction; callers sort by topic, partition.
INSERT INTO hapax.checkpoints AS c (group_id, topic, partition, owner, key_spec, scope, epoch, generation)
SELECT $1, d.topic, d.partition, $2, d.key_spec, d.scope, d.epoch + 1,
  CASE d.epoch WHEN 0 THEN
    coalesce((SELECT max(generation) FROM hapax.checkpoints WHERE group_id = $1 AND topic = d.topic COLLATE "C"),
      1 + greatest((SELECT max(generation) FROM hapax.dead_letters WHERE group_id = $1 AND topic = d.topic COLLATE "C"),
                   (SELECT max(generation) FROM hapax.attempts WHERE group_id = $1 AND topic = d.topic COLLATE "C"),
                   (SELECT max(generation) FROM hapax.halts WHERE group_id = $1 AND topic = d.topic COLLATE "C"),
                   (SELECT max(generation) FROM hapax.position_changes
                    WHERE group_id = $1 AND topic = d.topic COLLATE "C")), 1)
  ELSE 1 END
FROM unnest($3::text[], $4::int[], $5::text[], $6::text[], $7::bigint[])
  AS d (topic, partition, key_spec, scope, epoch)
ON CONFLICT (group_id, topic, partition) DO UPDATE
SET owner = excluded.owner, epoch = excluded.epoch, updated_at = now()
WHERE c.epoch = excluded.epoch - 1
RETURNING topic, partition, epoch, started_runs + 1 AS started_runs, generation
