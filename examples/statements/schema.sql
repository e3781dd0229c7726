CREATE TABLE entries (
  nr           bigint GENERATED ALWAYS AS IDENTITY,
  account      text NOT NULL,
  payment      text NOT NULL,
  amount_minor bigint NOT NULL
);
