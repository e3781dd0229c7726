-- Which database this is, which one its rows name, and its incarnation. One row.
-- The incarnation also differs after each start of the server. If files are copied while it is shut
-- down, and put back, they bring back the row.
-- `began`: the position of the last checkpoint. A run of the server writes none before it takes
-- connections but the one that it begins with.
SELECT s.id, s.database_oid::text AS stored_oid, s.system_identifier::text AS stored_system,
       d.oid::text AS oid, (SELECT system_identifier::text FROM pg_control_system()) AS system,
       (SELECT substr(encode(sha256(convert_to(concat(id, extract(epoch FROM
        pg_postmaster_start_time())), 'UTF8')), 'hex'), 1, 32)::uuid
        FROM hapax.incarnation) AS incarnation,
       (SELECT id::text FROM hapax.incarnation) AS unlogged_id,
       (SELECT redo_lsn::text FROM pg_control_checkpoint()) AS began
FROM hapax.store s, pg_database d WHERE d.datname = current_database()
