-- Each tenant has ids and accounts of its own.
CREATE TABLE @name@_entries (
  tenant  text NOT NULL,
  id      text NOT NULL,
  account text NOT NULL,
  amount  bigint NOT NULL,
  at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant, id)
);
CREATE TABLE @name@_sums (
  tenant  text NOT NULL,
  account text NOT NULL,
  amount  bigint NOT NULL,
  PRIMARY KEY (tenant, account)
);
