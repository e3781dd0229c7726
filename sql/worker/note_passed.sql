-- Notes until when the messages of partitions are all settled, if their checkpoints prove it.
-- $1 group, $2 topics, $3 partitions, $4 epochs, $5 ends of their logs, $6 when these were asked for
-- (not later). One row for each whose checkpoint has reached its end under that epoch.
INSERT INTO hapax.passed AS p (group_id, topic, partition, epoch, until)
SELECT $1, c.topic, c.partition, c.epoch, d.at
FROM unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::timestamptz[])
  AS d (topic, partition, epoch, log_end, at)
JOIN hapax.checkpoints c
  ON c.group_id = $1 AND c.topic = d.topic COLLATE "C" AND c.partition = d.partition
WHERE c.epoch = d.epoch AND c.next_offset >= d.log_end AND c.start_as IS NULL
ORDER BY c.topic, c.partition
ON CONFLICT (group_id, topic, partition) DO UPDATE
SET epoch = excluded.epoch, until = excluded.until
RETURNING topic, partition
