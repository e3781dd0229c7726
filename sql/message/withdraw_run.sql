-- Cautious mode: the message ran, and the process lives. So its crashes before are forgiven. If another
-- worker has the partition by now, only this worker's own announcement is taken back, not the other's.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset, $6 epoch of the partition as it was
-- announced (0: no worker has it). No rows.
WITH run AS (
  SELECT $6::bigint = 0 OR EXISTS (SELECT FROM hapax.epochs e
    WHERE e.group_id = $1 AND e.topic = $2 AND e.partition = $4 AND e.epoch = $6::bigint) AS is_ours),
never_failed AS (
  DELETE FROM hapax.attempts a USING run
  WHERE a.group_id = $1 AND a.topic = $2 AND a.generation = $3 AND a.partition = $4
    AND a.kafka_offset = $5 AND a.count = 0 AND (run.is_ours OR a.crashes <= 1))
UPDATE hapax.attempts a SET crashes = CASE WHEN run.is_ours THEN 0 ELSE greatest(a.crashes - 1, 0) END
FROM run
WHERE a.group_id = $1 AND a.topic = $2 AND a.generation = $3 AND a.partition = $4
  AND a.kafka_offset = $5 AND NOT (a.count = 0 AND (run.is_ours OR a.crashes <= 1))
