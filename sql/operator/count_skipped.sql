-- How many published records of a group operators have skipped since records are counted. $1 group. One row.
SELECT coalesce(sum(records), 0)::bigint FROM hapax.outbox_counts WHERE group_id = $1 AND what = 'skipped'
