DROP TABLE hapax.passed;
DROP TABLE hapax.logs;
