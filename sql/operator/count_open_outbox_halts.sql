-- Open halts of the outbox, of every group. One row.
SELECT count(*) FROM hapax.outbox_halts WHERE ended_at IS NULL
