-- The role of the workers, and what it may do with the handler's tables: what routes[].tables
-- declares. The test tells if a right is missing. Its rights on hapax's own tables come from
-- roles.sql, after `hapax migrate up`.
CREATE ROLE @name@_worker LOGIN;
GRANT INSERT ON @name@_entries TO @name@_worker;
