-- A partition is about to halt, tail_in_doubt. The first time counts: since then nothing was called.
-- But not if another run has committed Kafka's offset since: then it was about another loss.
-- $1 group, $2 topic, $3 partition, $4 the log's end, $5 the run of Kafka's offset. No rows.
INSERT INTO hapax.doubts AS d (group_id, topic, partition, asked, asked_run) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (group_id, topic, partition) DO UPDATE SET
  asked = CASE d.asked_run WHEN EXCLUDED.asked_run THEN d.asked ELSE EXCLUDED.asked END,
  decided = CASE d.asked_run WHEN EXCLUDED.asked_run THEN d.decided END,
  asked_run = EXCLUDED.asked_run
