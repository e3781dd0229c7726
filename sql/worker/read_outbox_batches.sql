-- The batches of a group that are not settled, and those that halted their topic, as
-- close_outbox_batch.sql marks them. $1 group. A row for each topic at most.
SELECT topic, number, token, follows, cardinality(ids) AS records
FROM hapax.outbox_batches WHERE group_id = $1 AND (ids <> '{}' OR follows = token)
