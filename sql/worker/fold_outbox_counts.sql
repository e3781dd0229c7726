-- Makes few rows of the counts of a group's published records. $1 group. One row.
SELECT hapax.fold_outbox_counts($1)
