ALTER TABLE hapax.replays DROP COLUMN key, DROP COLUMN tenant, DROP COLUMN token;
