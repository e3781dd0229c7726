-- The store's row before an operator's decision. One row as JSON; locks it.
SELECT to_json(s) FROM hapax.store s FOR UPDATE
