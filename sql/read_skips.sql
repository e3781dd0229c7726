-- The offsets that an operator has decided to skip and that may still come.
-- $1 group, $2 topic, $3 partition, $4 generation, $5 first offset. Few rows.
SELECT DISTINCT kafka_offset, reason, ended_by, why FROM hapax.halts
WHERE group_id = $1 AND topic = $2 AND partition = $3 AND generation = $4 AND kafka_offset >= $5
  AND decision = 'skip'
