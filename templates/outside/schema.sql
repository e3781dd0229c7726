CREATE TABLE @name@_entries (
  id      text PRIMARY KEY,
  account text NOT NULL,
  amount  bigint NOT NULL,
  charge  text NOT NULL,
  at      timestamptz NOT NULL DEFAULT now()
);
