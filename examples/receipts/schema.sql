CREATE TABLE booked (
  id           text PRIMARY KEY,
  account      text NOT NULL,
  amount_minor bigint NOT NULL CHECK (amount_minor > 0)
);
