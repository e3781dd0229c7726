-- Makes the incarnation row if crash recovery or a promotion has emptied the table. No rows.
INSERT INTO hapax.incarnation DEFAULT VALUES ON CONFLICT DO NOTHING
