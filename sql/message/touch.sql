-- Writes the least for which a COMMIT waits: the lock on a row that no one else writes. It changes
-- nothing and waits for no other lock of this kind. The first one makes the row.
WITH made AS (
  INSERT INTO hapax.leases (name, holder, until) VALUES ('touch', '', 'infinity') ON CONFLICT DO NOTHING)
SELECT FROM hapax.leases WHERE name = 'touch' FOR KEY SHARE
