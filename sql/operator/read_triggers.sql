-- The triggers that this schema must have on hapax's tables, and those of its foreign keys that are disabled.
-- Rows as JSON. `enabled`: as pg_trigger has it; NULL: the trigger is gone. `whole`: it fires when it must,
-- and its function does what it must.
SELECT to_json(r) FROM (
  SELECT w.name, w.on_table AS table, t.tgenabled AS enabled,
         t.tgtype = w.type AND (t.tgdeferrable AND t.tginitdeferred) = (w.name = 'seal')
           AND position(w.does IN pg_get_functiondef(t.tgfoid)) > 0 AS whole
  FROM (VALUES  -- type: ROW 1, BEFORE 2, INSERT 4, DELETE 8, UPDATE 16
    ('seal', 'idempotency_keys', 1 + 4 + 16, 'HX001', 'idempotency_keys', 'key'),
    ('seal', 'positions', 1 + 4, 'HX001', 'positions', 'group_id'),
    ('forgotten', 'idempotency_keys', 8, 'hapax.forgotten', 'forgotten', 'scope'),
    ('epochs', 'checkpoints', 1 + 4 + 8 + 16, 'hapax.epochs', 'epochs', 'epoch'),
    ('steps', 'idempotency_keys', 1 + 2 + 16, 'NEW.steps', 'idempotency_keys', 'steps'),
    ('count_published', 'outbox', 4, 'hapax.outbox_counts', 'outbox_counts', 'what'),
    ('count_removed', 'outbox', 8, 'hapax.outbox_counts', 'outbox_counts', 'what')
  ) AS w (name, on_table, type, does, in_table, in_column)
  LEFT JOIN pg_trigger t ON t.tgrelid = to_regclass('hapax.' || w.on_table) AND t.tgname = w.name
  WHERE EXISTS (SELECT FROM pg_attribute a  -- the schema may be the one before
    WHERE a.attrelid = to_regclass('hapax.' || w.in_table) AND a.attname = w.in_column)
  UNION ALL
  SELECT format('%I', t.tgname), c.relname, t.tgenabled, true
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
  WHERE c.relnamespace = 'hapax'::regnamespace AND t.tgisinternal AND t.tgenabled NOT IN ('O', 'A')) r
ORDER BY r.table, r.name
