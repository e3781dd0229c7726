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
    WHERE d.epoch = 0 OR d.epoch = (SELECT c.epoch FROM hapax.checkpoints c
      WHERE c.group_id = in_group COLLATE "C" AND c.topic = in_topic COLLATE "C" AND c.partition = d.p)
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
  WHERE in_epoch = 0 OR in_epoch = (SELECT c.epoch FROM hapax.checkpoints c
    WHERE c.group_id = in_group COLLATE "C" AND c.topic = in_topic COLLATE "C"
      AND c.partition = in_partition);
  IF NOT FOUND THEN RETURN 'fenced'; END IF;
  PERFORM set_config('hapax.gate', 'queued', true);
  RETURN 'taken';
END $$;
DROP TRIGGER epochs ON hapax.checkpoints;
DROP FUNCTION hapax.note_epoch();
DROP TABLE hapax.epochs;
