-- The seal's trigger on a table; no row if it is gone. $1 the table. As JSON.
SELECT to_json(r) FROM (
  SELECT t.tgenabled AS enabled, t.tgdeferrable AND t.tginitdeferred AS deferred,
         pg_get_functiondef(t.tgfoid) LIKE '%HX001%' AS raises
  FROM pg_trigger t
  WHERE t.tgrelid = to_regclass('hapax.' || $1) AND t.tgname = 'seal') r
