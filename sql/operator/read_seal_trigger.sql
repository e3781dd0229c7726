-- The seal's trigger; no row if it is gone. As JSON.
SELECT to_json(r) FROM (
  SELECT t.tgenabled AS enabled, t.tgdeferrable AND t.tginitdeferred AS deferred,
         pg_get_functiondef(t.tgfoid) LIKE '%HX001%' AS raises
  FROM pg_trigger t
  WHERE t.tgrelid = to_regclass('hapax.idempotency_keys') AND t.tgname = 'seal') r
