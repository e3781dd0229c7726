CREATE TABLE greetings (name text PRIMARY KEY, count bigint NOT NULL);
