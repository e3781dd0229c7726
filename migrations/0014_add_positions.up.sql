-- For routes with `key: "position"`: which offsets of a partition are settled at or above its
-- checkpoint. A transaction writes one row for each partition, instead of a key for each message.
-- The checkpoint removes the rows that it has passed.
CREATE TABLE hapax.positions (
  group_id   text COLLATE "C" NOT NULL,
  topic      text COLLATE "C" NOT NULL,
  partition  integer NOT NULL,
  generation integer NOT NULL,
  last       bigint NOT NULL,  -- the highest offset that the transaction settled
  earlier    integer[],        -- how far the others are below it; NULL: there are none
  -- By the highest offset, so that a checkpoint finds what it has passed, and a start what it has not.
  CONSTRAINT positions_pkey PRIMARY KEY (group_id, topic, partition, generation, last)
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000,
  vacuum_truncate = false);  -- which would lock out all transactions for a moment

CREATE CONSTRAINT TRIGGER seal AFTER INSERT ON hapax.positions
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (current_setting('hapax.gate', true) = 'arm')
  EXECUTE FUNCTION hapax.refuse_unsealed();

-- The lock that names a partition of a group. Two partitions of one number only wait for each other.
CREATE FUNCTION hapax.partition_lock(group_id text, topic text, partition integer) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT pg_catalog.hashtextextended(pg_catalog.concat_ws(pg_catalog.chr(1), 'hapax', $1, $2, $3), 0)
$$;

-- Each transaction that settles offsets shares its partitions' locks to its end. A worker that takes a
-- partition raises its epoch, and then waits until no transaction shares the lock. So it sees all that an
-- earlier owner settled, and an earlier owner settles nothing more.
--
-- These are functions because each statement in them sees what was committed before it. In one
-- statement the epoch could be from before the wait for the lock.

-- Takes the offsets of a transaction: those of $4[i] are $7[i] and, below it, $8[i]. Callers sort by
-- partition. Returns the partitions that are still the caller's; epoch 0: no worker has it.
CREATE FUNCTION hapax.claim_positions(nonce text, in_group text, in_topic text, partitions integer[],
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
    WHERE d.epoch = 0 OR d.epoch = (SELECT c.epoch FROM hapax.checkpoints c
      WHERE c.group_id = in_group COLLATE "C" AND c.topic = in_topic COLLATE "C" AND c.partition = d.p)
    RETURNING written.partition;
  PERFORM set_config('hapax.gate', 'queued', true);
END $$;

-- Takes one offset. `in_doubt`: an earlier transaction of this owner may have settled it, and may not
-- have ended yet. Then the lock is not shared, so that all others have ended.
-- Returns 'taken', 'fenced' (another worker or an operator took the partition) or 'settled'.
CREATE FUNCTION hapax.claim_position(nonce text, in_group text, in_topic text, in_partition integer,
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
  WHERE in_epoch = 0 OR in_epoch = (SELECT c.epoch FROM hapax.checkpoints c
    WHERE c.group_id = in_group COLLATE "C" AND c.topic = in_topic COLLATE "C"
      AND c.partition = in_partition);
  IF NOT FOUND THEN RETURN 'fenced'; END IF;
  PERFORM set_config('hapax.gate', 'queued', true);
  RETURN 'taken';
END $$;

-- Whether a transaction has settled the offset.
CREATE FUNCTION hapax.is_settled(in_group text, in_topic text, in_partition integer,
  in_generation integer, in_offset bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (
    SELECT FROM hapax.positions
    WHERE group_id = in_group COLLATE "C" AND topic = in_topic COLLATE "C" AND partition = in_partition
      AND generation = in_generation AND last >= in_offset
      AND (last = in_offset OR last - in_offset = ANY (earlier)))
$$;
