-- Whether a transaction has settled the offset, on a route whose key is the position.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset. One row.
SELECT hapax.is_settled($1, $2, $4::int, $3::int, $5::bigint) AS settled
