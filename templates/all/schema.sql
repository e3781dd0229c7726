CREATE TABLE @name@_entries (
  id      text PRIMARY KEY,
  account text NOT NULL,
  amount  bigint NOT NULL,
  at      timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE @name@_sums (account text PRIMARY KEY, amount bigint NOT NULL);
