-- Whether keys that were completed since a letter was given up on are still known. Not if it was
-- skipped because hapax did not know whether it had been completed before. If a letter was written
-- before its key was derived, its message may be a duplicate of any completion that is forgotten.
-- $1 the letter, $2 the route's retention in seconds, $3 until when retention has forgotten, $4 whether
-- its key is its position. One row.
SELECT d.created_at + make_interval(secs => $2) > clock_timestamp()
   AND d.created_at > $3::timestamptz
   AND ($4::boolean OR d.key IS NOT NULL OR d.reason NOT IN ('crashed', 'skipped_by_operator')
        OR $3::timestamptz = '-infinity')
   AND NOT EXISTS (
     SELECT FROM hapax.halts h
     WHERE h.group_id = d.group_id AND h.topic = d.topic AND h.generation = d.generation
       AND h.partition = d.partition AND h.kafka_offset = d.kafka_offset
       AND h.reason = 'unknown_below_highest') AS kept
FROM hapax.dead_letters d WHERE d.id = $1
