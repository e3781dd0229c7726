-- What the gateway was charged for: the message's effect in PostgreSQL, beside the charge itself.
CREATE TABLE IF NOT EXISTS charges (
  payment      text NOT NULL,
  charge       text NOT NULL,
  amount_minor bigint NOT NULL,
  PRIMARY KEY (payment)
);
