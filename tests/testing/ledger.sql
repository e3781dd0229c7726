-- A ledger that does not resist: no constraint of its own stops a second booking.
CREATE TABLE payments (id text NOT NULL, amount bigint NOT NULL, booked_at timestamptz);
CREATE TABLE entries (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL);
CREATE TABLE notes (entry bigint NOT NULL REFERENCES entries (number), note text NOT NULL);
