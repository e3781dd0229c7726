"""Handlers that do what they must not, by a grammar of SQL and exceptions.

Each hostile operation ends in one of the ways that the docs name, and all others stay exact: what
such a handler leaves in its session must not reach its neighbours.
"""

import itertools
import random
import time

from operators import Operator
from worlds import World, world

WEIGHT_OF_ALL = 60  # of 1,000 operations beside the polite ones
POLITE_S = 3

# What a handler leaves in its session; its operation takes effect.
SETTINGS = (
    "SET search_path = pg_catalog", "SET work_mem = '64kB'", "SET DateStyle = 'SQL, DMY'",
    "SET TimeZone = 'Pacific/Apia'", "SET extra_float_digits = -15",
    "SET bytea_output = 'escape'", "SET standard_conforming_strings = off",
    "SET default_transaction_isolation = 'serializable'",
    "SELECT set_config('search_path', 'pg_catalog', false)",
    "DO $$BEGIN PERFORM set_config('search_path', 'pg_catalog', false); END$$",
)
TEMPORARY = (
    "CREATE TEMP TABLE {0} (LIKE public.ledger INCLUDING DEFAULTS)",
    "CREATE TABLE pg_temp.{0} (LIKE public.ledger)",
    "SELECT * INTO TEMP {0} FROM public.ledger WHERE false",
    "SELECT * INTO  TEMP {0} FROM public.ledger WHERE false",
    "SELECT * INTO\nTEMPORARY TABLE {0} FROM public.ledger WHERE false",
    "SELECT * INTO LOCAL TEMP {0} FROM public.ledger WHERE false",
    "SELECT * INTO pg_temp.{0} FROM public.ledger WHERE false",
    "SELECT * INTO/**/TEMP {0} FROM public.ledger WHERE false",
    "CREATE TEMP VIEW {0} AS SELECT 1 AS op",
    "DO $$BEGIN CREATE TEMP TABLE {0} (LIKE public.ledger); END$$",
)
SESSION = (
    "LISTEN mine", "DECLARE mine CURSOR WITH HOLD FOR SELECT 1", "PREPARE mine AS SELECT 1",
    "SELECT pg_advisory_lock_shared(17)", "DEALLOCATE ALL",
)
HARMLESS = (("SAVEPOINT mine", "ROLLBACK TO mine"), ("SAVEPOINT mine", "RELEASE mine"),
            ("raw:SELECT 1; SELECT 2",), ("BEGIN",), ("SET LOCAL work_mem = '64kB'",))
# Each run fails, and nothing of it takes effect.
ERRORS = (
    ("SELECT 1 / 0",), ("try:SELECT 1 / 0",), ("throw a number",), ("throw",),
    ("EXECUTE nonexistent",), ("ROLLBACK TO nonexistent",), ("SELECT fails_with('40001')",),
    ("SELECT fails_with('P0001')",), ("SELECT fails_with('23505')",),
    ("SELECT fails_with('ZZ999')",), ("INSERT INTO fussy VALUES ('P0777')",),
    ("INSERT INTO fussy VALUES ('23514')",), ("try:SELECT fails_with('40P01')",),
)
# The transaction that was lent is gone: the route halts.
ENDS = (
    ("COMMIT",), ("ROLLBACK",), ("END",), ("ABORT",), ("raw:COMMIT; BEGIN",),
    ("COMMIT AND CHAIN",), ("ROLLBACK AND CHAIN",), ("raw:ROLLBACK; BEGIN READ WRITE",),
    ("ROLLBACK", "BEGIN READ WRITE", "INSERT INTO scratch VALUES (1)", "COMMIT", "BEGIN",
     "SELECT 1 / 0"),
    ("SET CONSTRAINTS ALL IMMEDIATE",), ("RESET ALL",),
)
LEDGER = """
CREATE TABLE scratch (n int);
GRANT INSERT ON scratch TO hapax_worker;
CREATE FUNCTION fails_with(code text) RETURNS void LANGUAGE plpgsql AS
  $$BEGIN RAISE EXCEPTION 'told to fail' USING ERRCODE = code; END$$;
CREATE TABLE fussy (code text);
GRANT INSERT ON fussy TO hapax_worker;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN RAISE EXCEPTION 'refused at COMMIT' USING ERRCODE = NEW.code; END$$;
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON fussy DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION refuse();
"""


def scripts_of(chance, batch):
    """deed -> steps, for this run. In a batch handlers share their session, as the docs tell: what
    shadows a table there is the neighbours' too, so nothing does."""
    number = itertools.count(1)
    scripts = {}

    def add(kind, steps, book_first=None):
        first = chance.random() < 0.5 if book_first is None else book_first
        script = ["book", *steps] if first else [*steps, "book"]
        scripts[f"hostile {kind} {next(number)}"] = script

    if not batch:
        for text in SETTINGS:
            add("leaves", [text], book_first=True)
    for text in TEMPORARY:
        add("leaves", [text.format("shadow" if batch else "ledger")], book_first=True)
    for text in SESSION:
        add("leaves", [text], book_first=True)
    for steps in HARMLESS:
        add("leaves", steps)
    for steps in ERRORS:
        add("fails", steps)
    for steps in ENDS:
        add("ends", steps)
    # Two of them, one behind the other: under the first one's setting the second may lack a table.
    for _ in range(6):
        leaves = chance.choice([name for name in scripts if " leaves " in name])
        fails = chance.choice([name for name in scripts if " fails " in name])
        add("both", [s for s in scripts[leaves] + scripts[fails] if s != "book"], book_first=True)
    return scripts


@world
class Hostile(World):
    name = "hostile"
    ledger = LEDGER
    halts = {"handler_ended_transaction", "statement_refused"}
    rate = 80
    variant = {"pooler": False, "compacted": False}
    except_faults = ("message-that-kills", "operator-skips")

    def __init__(self, site):
        super().__init__(site)
        batch = site.options.variant.get("batch") or self.chance.choice([1, 1, 20])
        self.variant = {**self.variant, "batch": batch}
        self.scripts = scripts_of(random.Random(f"{site.seed} grammar"), batch > 1)
        kinds = {"leaves": 3, "fails": 1.5, "both": 0.6, "ends": 0.3}
        weights = {deed: kinds[deed.split()[1]] for deed in self.scripts}
        share = WEIGHT_OF_ALL / sum(weights.values())
        self.deeds = {"book": 900, "slow": 20, "flaky": 10, "reject": 10,
                      **{deed: weight * share for deed, weight in weights.items()}}
        made_polite = {"rejected"}
        self.either = {deed: made_polite for deed in self.scripts if " leaves " in deed}
        # A dead letter of the decision `skip` is the operator's, and is told by him.
        self.fails = {deed: {"attempts_exhausted"} | made_polite
                      for deed in self.scripts if " fails " in deed or " both " in deed}
        self.fails |= {deed: made_polite for deed in self.scripts if " ends " in deed}
        self.polite_until = 0

    def began(self):
        self.operator = Operator(self.site, self.decide)
        self.site.operators.append(self.operator)

    def decide(self, halt):
        if halt.reason not in self.halts:
            return None
        if halt.offset is not None and self.chance.random() < 0.7:
            return "skip"
        # As one does who deploys a handler that was put right, and later the old one again.
        (self.site.folder / "polite").touch()
        self.polite_until = time.monotonic() + POLITE_S
        return "retry"

    def turn(self):
        self.operator.turn()
        if self.polite_until and time.monotonic() > self.polite_until:
            (self.site.folder / "polite").unlink(missing_ok=True)
            self.polite_until = 0

    def complaints(self, checker, cursor):
        """Halts of single messages name one that earned it, and no neighbour."""
        if self.site.variant["batch"] > 1:
            return []
        deeds = {m.at: m.deed for m in checker.messages}
        earned = {"handler_ended_transaction": " ends ", "statement_refused": " both "}
        cursor.execute("SELECT partition, kafka_offset, reason, detail FROM hapax.halts "
                       "WHERE kafka_offset IS NOT NULL")
        return [f"{(partition, offset)} ({deeds.get((partition, offset))}) was halted for {reason}, "
                f"and did nothing like it: {detail}"
                for partition, offset, reason, detail in cursor.fetchall()
                if earned.get(reason, "") not in deeds.get((partition, offset), "")]
