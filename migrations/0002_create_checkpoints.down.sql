DROP TABLE hapax.operator_log;
DROP TABLE hapax.halts;
DROP TABLE hapax.checkpoints;
DROP TABLE hapax.incarnation;
DROP TABLE hapax.store;
