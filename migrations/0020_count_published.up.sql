-- Counts what is published, by topic, so that `hapax audit` can account for it:
-- published = sent + skipped + left + unsent. A row of the outbox that goes in another way is noted, too.
--
-- Each transaction adds rows here and changes none, so none waits for another's counts. While an old
-- snapshot is open, no row collects versions. The relay folds the rows.

CREATE TABLE hapax.outbox_counts (
  group_id text COLLATE "C" NOT NULL,
  topic    text COLLATE "C" NOT NULL,
  what     text COLLATE "C" NOT NULL
           CHECK (what IN ('published', 'sent', 'skipped', 'left', 'removed')),
  records  bigint NOT NULL,
  at       timestamptz NOT NULL DEFAULT now(),  -- of the first of them
  by       text                                 -- of what = 'removed': which role and program, which ids
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 10000);

-- Each role that may read the outbox may read the counts. So `hapax audit` needs no roles.sql first.
DO $$
DECLARE
  reader text;
BEGIN
  FOR reader IN
    SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
    FROM pg_class, aclexplode(relacl)
    WHERE oid = 'hapax.outbox'::regclass AND privilege_type = 'SELECT' AND grantee <> relowner
  LOOP
    EXECUTE 'GRANT SELECT ON hapax.outbox_counts TO ' || reader;
  END LOOP;
END $$;

-- It runs with its owner's rights. So handlers and relays cannot write counts in another way, and those of
-- the schema before are counted.
CREATE FUNCTION hapax.count_outbox() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO hapax.outbox_counts (group_id, topic, what, records)
    SELECT group_id, topic, 'published', count(*) FROM changed GROUP BY group_id, topic;
    RETURN NULL;
  END IF;
  -- What a relay removes was sent. Its transaction has locked the lease of its group. Operators' orders
  -- tell what they do.
  INSERT INTO hapax.outbox_counts (group_id, topic, what, records, by)
  SELECT c.group_id, c.topic, c.what, c.records,
         CASE c.what WHEN 'removed' THEN format('role %s, application_name "%s", ids %s to %s',
           session_user, current_setting('application_name'), c.low, c.high) END
  FROM (
    SELECT r.group_id, r.topic, r.records, r.low, r.high, CASE
             WHEN EXISTS (SELECT FROM hapax.leases l WHERE l.name = 'outbox of ' || r.group_id
                            AND pg_current_xact_id()::xid IN (l.xmin, l.xmax)) THEN 'sent'
             ELSE coalesce(nullif(current_setting('hapax.removes', true), ''), 'removed') END AS what
    FROM (SELECT group_id, topic, count(*) AS records, min(id) AS low, max(id) AS high
          FROM changed GROUP BY group_id, topic) r) c;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION hapax.count_outbox() FROM PUBLIC;

-- The first of them locks the outbox against writers until COMMIT. So each row is counted once.
CREATE TRIGGER count_published AFTER INSERT ON hapax.outbox
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION hapax.count_outbox();
CREATE TRIGGER count_removed AFTER DELETE ON hapax.outbox
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION hapax.count_outbox();
INSERT INTO hapax.outbox_counts (group_id, topic, what, records)
SELECT group_id, topic, 'published', count(*) FROM hapax.outbox GROUP BY group_id, topic;

-- Makes one row of the many of each topic, without changing a sum. Each role may run it.
CREATE FUNCTION hapax.fold_outbox_counts(in_group text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH many AS (
    SELECT topic, what FROM hapax.outbox_counts WHERE group_id = in_group COLLATE "C" AND what <> 'removed'
    GROUP BY topic, what HAVING count(*) > 100
  ), folded AS (
    DELETE FROM hapax.outbox_counts c USING many
    WHERE c.group_id = in_group COLLATE "C" AND c.topic = many.topic AND c.what = many.what
    RETURNING c.topic, c.what, c.records, c.at
  )
  INSERT INTO hapax.outbox_counts (group_id, topic, what, records, at)
  SELECT in_group, topic, what, sum(records)::bigint, min(at) FROM folded GROUP BY topic, what
$$;
