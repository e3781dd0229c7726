-- Decisions moved and copy: this database holds the store from now on.
-- $1 whether it gets a new id (a copy). One row as JSON.
UPDATE hapax.store s
SET database_oid = d.oid,
    system_identifier = (SELECT system_identifier FROM pg_control_system()),
    id = CASE WHEN $1::boolean THEN gen_random_uuid() ELSE s.id END
FROM pg_database d WHERE d.datname = current_database()
RETURNING to_json(s)
