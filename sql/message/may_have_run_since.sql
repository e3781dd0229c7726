-- Whether the message of a dead letter may have taken effect since. It may if an operator let it run
-- again by the decision `run`, and if no later giving up is known. Its transaction leaves next_try before
-- last_at. Another failed run tells nothing: the message may be tried again, or the failure is of an
-- earlier owner, whose COMMIT came behind the effect. Nor does a run tell that was only announced. Only
-- for routes whose key is the position, because no key tells there. PostgreSQL's clock may have gone back
-- since the letter, by 5 minutes at most. So a decision shortly before the letter counts, too.
-- $1 dead letter. One row.
SELECT EXISTS (
  SELECT FROM hapax.dead_letters d
  JOIN hapax.halts h USING (group_id, topic, generation, partition)
  WHERE d.id = $1 AND h.decision = 'run' AND h.kafka_offset <= d.kafka_offset
    AND h.ended_at >= d.created_at - interval '5 minutes'
    AND NOT EXISTS (SELECT FROM hapax.attempts a
                    WHERE a.group_id = d.group_id AND a.topic = d.topic
                      AND a.generation = d.generation AND a.partition = d.partition
                      AND a.kafka_offset = d.kafka_offset AND a.last_at > h.ended_at AND a.count > 0
                      AND a.next_try < a.last_at)) AS may
