-- Run once by PostgreSQL's image on an empty volume, after the example's own schema.sql: the role
-- of the workers. Its rights on hapax's tables come from sql/roles.sql, after `hapax migrate up`.
CREATE ROLE hapax_worker LOGIN PASSWORD 'worker';
GRANT SELECT, INSERT ON payments TO hapax_worker;
