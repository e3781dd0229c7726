-- The last record below the checkpoint that was settled, as "generation/offset/timestamp". The next
-- start reads it again: if another stands there, the topic was made again or lost its end, and grew
-- past the checkpoint since. NULL: a worker from before wrote the checkpoint, or nothing was settled.
ALTER TABLE hapax.checkpoints ADD COLUMN last_record text;
