-- Which database this is, what it says it was, and its incarnation. One row.
-- The incarnation is another one after each start of the server, too: files that were copied while it
-- was shut down, and put back, bring back the row.
SELECT s.id, s.database_oid::text AS stored_oid, s.system_identifier::text AS stored_system,
       d.oid::text AS oid, (SELECT system_identifier::text FROM pg_control_system()) AS system,
       (SELECT substr(encode(sha256(convert_to(concat(id, extract(epoch FROM
        pg_postmaster_start_time())), 'UTF8')), 'hex'), 1, 32)::uuid
        FROM hapax.incarnation) AS incarnation
FROM hapax.store s, pg_database d WHERE d.datname = current_database()
