-- Keeps the epochs of partitions apart from their checkpoints. Each claim reads an epoch, and checkpoints
-- change every second. While an old snapshot is open (pg_dump), PostgreSQL removes no version of such a
-- row, and each claim would walk over all of them.
--
-- A trigger writes them, so that workers and commands of the schema before go on. They read the epochs in
-- hapax.checkpoints, which stay there.

CREATE TABLE hapax.epochs (
  group_id  text COLLATE "C" NOT NULL,
  topic     text COLLATE "C" NOT NULL,
  partition integer NOT NULL,
  epoch     bigint NOT NULL,
  CONSTRAINT epochs_pkey PRIMARY KEY (group_id, topic, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500);

-- Each role that may read the checkpoints may read the epochs. So running workers need no roles.sql first.
DO $$
DECLARE
  reader text;
BEGIN
  FOR reader IN
    SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
    FROM pg_class, aclexplode(relacl)
    WHERE oid = 'hapax.checkpoints'::regclass AND privilege_type = 'SELECT' AND grantee <> relowner
  LOOP
    EXECUTE 'GRANT SELECT ON hapax.epochs TO ' || reader;
  END LOOP;
END $$;

-- It runs with its owner's rights, because workers may read this table and not write it.
CREATE FUNCTION hapax.note_epoch() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM hapax.epochs
    WHERE group_id = OLD.group_id AND topic = OLD.topic AND partition = OLD.partition
      AND (TG_OP = 'DELETE' OR (group_id, topic, partition) IS DISTINCT FROM
                               (NEW.group_id, NEW.topic, NEW.partition));
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO hapax.epochs AS e (group_id, topic, partition, epoch)
    VALUES (NEW.group_id, NEW.topic, NEW.partition, NEW.epoch)
    ON CONFLICT (group_id, topic, partition) DO UPDATE SET epoch = excluded.epoch;
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION hapax.note_epoch() FROM PUBLIC;

-- Takes and checkpoints wait for this lock. No claim does.
CREATE TRIGGER epochs AFTER INSERT OR DELETE OR UPDATE OF epoch, group_id, topic, partition
  ON hapax.checkpoints FOR EACH ROW EXECUTE FUNCTION hapax.note_epoch();
INSERT INTO hapax.epochs SELECT group_id, topic, partition, epoch FROM hapax.checkpoints;

-- The two functions of migration 14, which read the epochs here now.
CREATE OR REPLACE FUNCTION hapax.claim_positions(nonce text, in_group text, in_topic text, partitions integer[],
  generations integer[], epochs bigint[], lasts bigint[], earlier text[]) RETURNS SETOF integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('hapax.claim', nonce, true), set_config('hapax.gate', 'arm', true);
  PERFORM pg_advisory_xact_lock_shared(hapax.partition_lock(in_group, in_topic, p))
  FROM unnest(partitions) AS p;
  RETURN QUERY
    INSERT INTO hapax.positions AS written (group_id, topic, partition, generation, last, earlier)
    SELECT in_group, in_topic, d.p, d.generation, d.last, d.others::integer[]
    FROM unnest(partitions, generations, epochs, lasts, earlier)
      AS d (p, generation, epoch, last, others)
    WHERE d.epoch = 0 OR d.epoch = (SELECT e.epoch FROM hapax.epochs e
      WHERE e.group_id = in_group COLLATE "C" AND e.topic = in_topic COLLATE "C" AND e.partition = d.p)
    RETURNING written.partition;
  PERFORM set_config('hapax.gate', 'queued', true);
END $$;

CREATE OR REPLACE FUNCTION hapax.claim_position(nonce text, in_group text, in_topic text, in_partition integer,
  in_generation integer, in_epoch bigint, in_offset bigint, in_doubt boolean) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('hapax.claim', nonce, true), set_config('hapax.gate', 'arm', true);
  IF in_doubt THEN
    PERFORM pg_advisory_xact_lock(hapax.partition_lock(in_group, in_topic, in_partition));
    IF hapax.is_settled(in_group, in_topic, in_partition, in_generation, in_offset) THEN
      RETURN 'settled';
    END IF;
  ELSE
    PERFORM pg_advisory_xact_lock_shared(hapax.partition_lock(in_group, in_topic, in_partition));
  END IF;
  INSERT INTO hapax.positions (group_id, topic, partition, generation, last)
  SELECT in_group, in_topic, in_partition, in_generation, in_offset
  WHERE in_epoch = 0 OR in_epoch = (SELECT e.epoch FROM hapax.epochs e
    WHERE e.group_id = in_group COLLATE "C" AND e.topic = in_topic COLLATE "C"
      AND e.partition = in_partition);
  IF NOT FOUND THEN RETURN 'fenced'; END IF;
  PERFORM set_config('hapax.gate', 'queued', true);
  RETURN 'taken';
END $$;
