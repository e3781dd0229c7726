-- What became of the records that a group has published since they are counted, by topic. One snapshot,
-- so that the sums fit while workers run. Counts each unsent record. $1 group. A row for each topic, as JSON.
SELECT to_json(r) FROM (
  SELECT topic, c.since, coalesce(c.published, 0) AS published, coalesce(c.sent, 0) AS sent,
         coalesce(c.skipped, 0) AS skipped, coalesce(c.left_to_original, 0) AS left_to_original,
         coalesce(c.removed, 0) AS removed, coalesce(u.unsent, 0) AS unsent
  FROM (
    SELECT topic, min(at) AS since,
           (sum(records) FILTER (WHERE what = 'published'))::bigint AS published,
           (sum(records) FILTER (WHERE what = 'sent'))::bigint AS sent,
           (sum(records) FILTER (WHERE what = 'skipped'))::bigint AS skipped,
           (sum(records) FILTER (WHERE what = 'left'))::bigint AS left_to_original,
           (sum(records) FILTER (WHERE what = 'removed'))::bigint AS removed
    FROM hapax.outbox_counts WHERE group_id = $1 GROUP BY topic) c
  FULL JOIN (
    SELECT topic, count(*) AS unsent FROM hapax.outbox WHERE group_id = $1 GROUP BY topic) u
  USING (topic) ORDER BY topic) r
