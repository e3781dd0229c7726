-- Keeps what retention has forgotten as a fact. If the setting is raised, it no longer tells which keys
-- a shorter one removed.
--
-- A trigger notes it, so that a worker of the schema before and an owner's own DELETE are noted, too.
-- It is a table of its own, so that such workers go on.

CREATE TABLE hapax.forgotten (
  scope text COLLATE "C" NOT NULL,
  until timestamptz NOT NULL,        -- when the newest completion took effect whose key was removed
  CONSTRAINT forgotten_pkey PRIMARY KEY (scope)
) WITH (fillfactor = 50);

-- It runs with its owner's rights, because workers may read this table and not write it. It locks
-- scopes in one order, so that two workers that remove keys cannot wait for each other.
CREATE FUNCTION hapax.note_forgotten() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO hapax.forgotten AS f (scope, until)
    SELECT scope, max(updated_at) FROM gone WHERE status = 'completed' GROUP BY scope ORDER BY scope
  ON CONFLICT (scope) DO UPDATE SET until = excluded.until WHERE f.until < excluded.until;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION hapax.note_forgotten() FROM PUBLIC;

-- Removals before this migration were not noted. So each scope may have forgotten a key until now.
INSERT INTO hapax.forgotten (scope, until)
  SELECT scope, now() FROM hapax.checkpoints UNION SELECT scope, now() FROM hapax.dead_letters;

-- Claims wait for this lock, so it comes last.
CREATE TRIGGER forgotten AFTER DELETE ON hapax.idempotency_keys REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION hapax.note_forgotten();
UPDATE hapax.forgotten SET until = clock_timestamp();
