ALTER TABLE hapax.checkpoints DROP COLUMN last_record;
