-- When the newest completion of a scope took effect whose key was removed. $1 scope. One row, or
-- none: none was.
SELECT until::text FROM hapax.forgotten WHERE scope = $1
