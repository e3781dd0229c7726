-- The role of the workers, and what it may do with the handler's tables. Its rights on hapax's own
-- tables come from roles.sql, after `hapax migrate up`.
CREATE ROLE @name@_worker LOGIN;
GRANT SELECT, INSERT ON @name@_entries TO @name@_worker;
