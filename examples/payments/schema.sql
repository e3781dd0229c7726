-- The handler's own table. hapax's live beside it: `hapax migrate up`.
CREATE TABLE payments (
  id           text PRIMARY KEY,
  account      text NOT NULL,
  amount_minor bigint NOT NULL CHECK (amount_minor > 0)
);
