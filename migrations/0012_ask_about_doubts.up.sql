-- The log's end when a partition halted, tail_in_doubt: what came later was surely not called.
-- NULL: nobody was asked. asked_run: the run that had committed Kafka's offset by then, 0 if none. If
-- a later one has, the row came back with an older state, and its question was about another loss.
ALTER TABLE hapax.doubts ADD COLUMN asked bigint, ADD COLUMN asked_run bigint;
