-- Which Kafka cluster each group's published records go to. A relay that reaches another cluster sends
-- nothing there. Relays of the schema before do not look.

CREATE TABLE hapax.outbox_clusters (
  group_id   text COLLATE "C" NOT NULL,
  cluster_id text COLLATE "C" NOT NULL,
  noted_at   timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT outbox_clusters_pkey PRIMARY KEY (group_id)
);

-- Each role that may halt the outbox may note its cluster. So running relays need no roles.sql first.
DO $$
DECLARE
  relay text;
BEGIN
  FOR relay IN
    SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
    FROM pg_class, aclexplode(relacl)
    WHERE oid = 'hapax.outbox_halts'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
  LOOP
    EXECUTE 'GRANT SELECT, INSERT ON hapax.outbox_clusters TO ' || relay;
  END LOOP;
END $$;
