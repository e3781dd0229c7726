-- What a worker took last, and whether PostgreSQL may have lost its tail since. $1 group, $2 worker.
-- A row for each partition, none in a copy of the database; incarnation is NULL if no worker has
-- looked since the loss.
SELECT topic, partition, epoch,
       (SELECT substr(encode(sha256(convert_to(concat(id, extract(epoch FROM
        pg_postmaster_start_time())), 'UTF8')), 'hex'), 1, 32)::uuid
        FROM hapax.incarnation) AS incarnation,
       (SELECT id::text FROM hapax.incarnation) AS unlogged_id, next_offset
FROM hapax.checkpoints
WHERE group_id = $1 AND owner = $2 AND EXISTS (
  SELECT FROM hapax.store s JOIN pg_database d ON d.oid = s.database_oid
  WHERE d.datname = current_database()
    AND coalesce(s.system_identifier = (SELECT system_identifier FROM pg_control_system()), true))
