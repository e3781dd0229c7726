-- The batches of a group that are not settled. $1 group. A row for each topic at most.
SELECT topic, number, token, follows, cardinality(ids) AS records
FROM hapax.outbox_batches WHERE group_id = $1 AND ids <> '{}'
