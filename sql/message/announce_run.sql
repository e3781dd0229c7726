-- Cautious mode: records that a message is about to run, before anything is done with it. A worker
-- that finds the row again knows that the process died while it ran.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset, $6 handler, $7 epoch of the partition (0:
-- no worker has it).
-- last_at stays that of the last counted failure, if there is one.
-- One row: how often it was announced and not withdrawn, this time included. None if the partition is
-- another worker's: its own announcement stays as it is.
INSERT INTO hapax.attempts AS a (group_id, topic, generation, partition, kafka_offset, count,
  crashes, last_error, handler, next_try)
SELECT $1, $2, $3, $4, $5, 0, 1, 'the worker process ended while this message ran', $6, now()
WHERE $7::bigint = 0 OR $7::bigint = (SELECT e.epoch FROM hapax.epochs e
  WHERE e.group_id = $1 AND e.topic = $2 AND e.partition = $4)
ON CONFLICT (group_id, topic, generation, partition, kafka_offset) DO UPDATE
SET crashes = a.crashes + 1,
    last_at = CASE WHEN a.count = 0 THEN now() ELSE a.last_at END
RETURNING crashes
