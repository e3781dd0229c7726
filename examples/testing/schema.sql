CREATE TABLE accounts (id text PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE statements (
  number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account text NOT NULL REFERENCES accounts,
  amount  bigint NOT NULL,
  at      timestamptz NOT NULL DEFAULT now()
);
