-- Decision recreated: a log whose topic's id no client could tell is known by what operators decided.
-- So it has another number from now on, for each group that begins it before the halted one does.
-- $1 group, $2 topic, $3 partition, $4 scope, $5 the halt's generation: that of the log that is gone.
-- No rows. It changes nothing if the group's decision is there already, and has not been used up.
UPDATE hapax.logs l
SET updated_at = now(), generation = 1 + greatest(
  (SELECT max(o.generation) FROM hapax.logs o WHERE o.topic = l.topic AND o.partition = l.partition),
  (SELECT max(c.generation) FROM hapax.checkpoints c
   WHERE c.topic = l.topic AND c.partition = l.partition))
WHERE l.scope = $4 AND l.topic = $2 AND l.partition = $3 AND l.topic_id = '' AND l.generation = $5
  AND NOT EXISTS (SELECT FROM hapax.checkpoints c
                  WHERE c.group_id = $1 AND c.topic = $2 AND c.partition = $3
                    AND c.start_as = 'initial' AND c.next_offset IS NULL)
