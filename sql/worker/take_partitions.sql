-- Takes partitions: from here on every write of an older owner misses. Rows that are not there are
-- made.
-- $1 group, $2 owner, $3 topics, $4 partitions, $5 key specs, $6 scopes, $7 the epochs that were read
-- (0: no row). One row for each that was not taken meanwhile, with its epoch and its checkpoint, which no
-- earlier owner moves any more. `started_runs`: the runs that will have been started once its start is
-- agreed. A taker that the group takes it from before that has run nothing, so it is not counted here.
-- A new row begins at the transaction's id, which no row had before. Else a worker that slept while its
-- group was forgotten could have the epoch of a later group of that name.
-- A group that was forgotten has left letters, attempts and decisions. Its next rows have a generation
-- of their own, so that these mean no message of a topic that was made again since.
-- Locks the rows for this short transaction; callers sort by topic, partition.
INSERT INTO hapax.checkpoints AS c (group_id, topic, partition, owner, key_spec, scope, epoch, generation)
SELECT $1, d.topic, d.partition, $2, d.key_spec, d.scope,
  CASE d.epoch WHEN 0 THEN pg_current_xact_id()::text::bigint ELSE d.epoch + 1 END,
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
WHERE c.epoch = (SELECT d.epoch FROM unnest($3::text[], $4::int[], $7::bigint[]) AS d (topic, partition, epoch)
  WHERE d.topic = c.topic COLLATE "C" AND d.partition = c.partition)
RETURNING topic, partition, epoch, next_offset, started_runs + 1 AS started_runs, generation
