-- Which server process serves this transaction: behind a transaction pooler the next may differ.
-- One row.
SELECT to_json(r) FROM (SELECT pg_backend_pid() AS pid) r
