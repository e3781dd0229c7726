-- Counts one failed run, unless the partition is another worker's. That worker may have completed the
-- message already, and with a newer failure it would count as unfinished (known_coordinates.sql).
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset, $6 error, $7 SQLSTATE or NULL,
-- $8 handler, $9 seconds from now to the next try, $10 epoch of the partition (0: no worker has it).
-- One row, or none: the count with this one, and the milliseconds from the first to this one.
-- An announcement is no failure, so the first counts from itself. next_try is not before last_at, though
-- the clock goes back: see may_have_run_since.sql.
-- If the partition is taken while this runs, last_at is still from before that.
INSERT INTO hapax.attempts AS a (group_id, topic, generation, partition, kafka_offset, count,
  last_error, sqlstate, handler, next_try)
SELECT $1, $2, $3, $4, $5, 1, $6, $7, $8, greatest(now(), clock_timestamp()) + make_interval(secs => $9)
WHERE $10::bigint = 0 OR $10::bigint = (SELECT e.epoch FROM hapax.epochs e
  WHERE e.group_id = $1 AND e.topic = $2 AND e.partition = $4)
ON CONFLICT (group_id, topic, generation, partition, kafka_offset) DO UPDATE
SET count = a.count + 1, last_error = excluded.last_error, sqlstate = excluded.sqlstate,
    handler = excluded.handler, last_at = now(), next_try = excluded.next_try,
    first_at = CASE WHEN a.count = 0 THEN now() ELSE a.first_at END
RETURNING count, (extract(epoch FROM last_at - first_at) * 1000)::bigint AS lasting_ms
