DROP TABLE hapax.replays;
ALTER TABLE hapax.dead_letters
  DROP COLUMN ended_at, DROP COLUMN ended_as, DROP COLUMN ended_by, DROP COLUMN ended_why;
DROP TABLE hapax.position_changes;
