-- Which call a replay has made: the key, and the token that its last take drew. A decision about that
-- call runs the replay's payload again, which may be edited. NULL: it has taken no key, or a worker of
-- the schema before ran it.

ALTER TABLE hapax.replays
  ADD COLUMN key    text COLLATE "C",
  ADD COLUMN tenant text COLLATE "C",
  ADD COLUMN token  bigint;
