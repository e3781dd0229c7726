-- Whether keys that were completed since a letter was given up on are still known. Not if it was
-- skipped because hapax did not know whether it had been completed before.
-- $1 the letter, $2 the route's retention in seconds, $3 until when retention has forgotten. One row.
SELECT d.created_at + make_interval(secs => $2) > clock_timestamp()
   AND d.created_at > $3::timestamptz AND NOT EXISTS (
     SELECT FROM hapax.halts h
     WHERE h.group_id = d.group_id AND h.topic = d.topic AND h.generation = d.generation
       AND h.partition = d.partition AND h.kafka_offset = d.kafka_offset
       AND h.reason = 'unknown_below_highest') AS kept
FROM hapax.dead_letters d WHERE d.id = $1
