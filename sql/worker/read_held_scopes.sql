-- For each scope the time before which a key must have expired to be removed. A partition of the
-- scope, of any group, holds the keys that a message which waits there may have. $1 the time. A row for each scope with a
-- checkpoint: until that time or earlier, the partition that holds it back most, and for how long.
-- '-infinity': its worker has not noted one since the partition was taken or moved. A row whose start was never
-- agreed holds nothing. How long counts from the last time that was noted under any epoch. The checkpoint's
-- own time would not tell: it moves while the partition lags, and with each taker.
SELECT DISTINCT ON (scope) scope, group_id, topic, partition,
       to_json(least(until, $1::timestamptz)) #>> '{}' AS until,
       extract(epoch FROM $1::timestamptz - noted)::bigint AS seconds
FROM (SELECT c.scope, c.group_id, c.topic, c.partition, coalesce(p.until, c.updated_at) AS noted,
             CASE WHEN p.epoch = c.epoch THEN p.until ELSE '-infinity' END AS until
      FROM hapax.checkpoints c LEFT JOIN hapax.passed p USING (group_id, topic, partition)
      WHERE c.next_offset IS NOT NULL OR c.start_as IS NOT NULL) held
ORDER BY scope, held.until, noted
