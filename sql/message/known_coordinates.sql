-- Whether a message below the highest checkpoint is still remembered by its coordinates. It may be
-- a dead letter, or it failed and was then jumped over, unfinished. A failed run alone proves
-- nothing, because the message may have completed since. Nor does one that was only announced
-- (announce_run.sql): cautious mode announces every message. Nor does one that is older than
-- retention or than what was forgotten: another message with the key may have completed and be
-- forgotten.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset, $6 retention in seconds, $7 until when
-- retention has forgotten. One row.
SELECT EXISTS (SELECT FROM hapax.dead_letters
               WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4
                 AND kafka_offset = $5) AS dead,
       EXISTS (SELECT FROM hapax.attempts
               WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4
                 AND kafka_offset = $5 AND count > 0
                 AND last_at > now() - make_interval(secs => $6)
                 AND last_at > $7::timestamptz)
       AND EXISTS (SELECT FROM hapax.position_changes
                   WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4
                     AND from_offset <= $5 AND to_offset > $5) AS attempted
