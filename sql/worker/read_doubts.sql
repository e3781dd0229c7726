-- What is in doubt of partitions, because PostgreSQL had lost its tail at an earlier start.
-- $1 group, $2 topics, $3 partitions. One row for each of which anything was ever in doubt.
SELECT c.topic, c.partition, below, asked, asked_run, decided
FROM unnest($2::text[], $3::int[]) AS d (topic, partition)
JOIN hapax.doubts c
  ON c.group_id = $1 AND c.topic = d.topic COLLATE "C" AND c.partition = d.partition
