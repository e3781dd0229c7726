-- When the newest completion of a scope took effect whose key was removed. $1 scope. No row if no key
-- was removed.
SELECT to_json(until) #>> '{}' FROM hapax.forgotten WHERE scope = $1
