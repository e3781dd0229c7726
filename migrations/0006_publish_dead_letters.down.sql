DROP INDEX hapax.dead_letters_to_publish;
ALTER TABLE hapax.dead_letters DROP COLUMN published_at;
