DROP TABLE hapax.dead_letters;
DROP TABLE hapax.attempts;
