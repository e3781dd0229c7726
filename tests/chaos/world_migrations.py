"""The handler's tables are altered while it writes them, as the docs tell operators to.

A column that is added, an enum that is replaced and a column that becomes text may come under load:
statements that became stale run again on a new session, and no message pays for it. A parameter
keeps the type of its column as long as its session lives, so for other changes of a type the
workers are stopped before.
"""

import psycopg2

from faults import fault, until
from worlds import World, world

LEDGER = """
CREATE TYPE kind AS ENUM ('small', 'large');
CREATE TABLE shapes (op text PRIMARY KEY, kind kind, reference int, ratio real,
                     made_at timestamptz DEFAULT clock_timestamp());
ALTER TABLE shapes DROP CONSTRAINT shapes_pkey;
CREATE INDEX ON shapes (op);
GRANT SELECT, INSERT, UPDATE ON shapes TO hapax_worker;
"""


@world
class Migrations(World):
    name = "migrations"
    ledger = LEDGER
    variant = {"compacted": False}
    deeds = {"book": 930, "slow": 20, "flaky": 15, "reject": 10, "swallow": 10, "no key": 5}
    rate = 100
    halts = set()
    # What takes PostgreSQL back takes a migration back, and the handler's new version stays.
    except_faults = ("point-in-time-restore", "replica-promoted", "operator-skips",
                     "message-that-kills")

    def __init__(self, site):
        super().__init__(site)
        self.precise_from = None  # the time of PostgreSQL when `ratio` became precise

    def configure(self, config):
        config["routes"][0]["options"]["shapes"] = True

    def complaints(self, checker, cursor):
        """What stands in `shapes` is what the handler gave, once for each line of the ledger."""
        cursor.execute("SELECT l.op, l.amount, s.kind::text, s.reference::text, s.ratio::float8, "
                       "s.made_at >= %s::timestamptz, count(*) OVER (PARTITION BY l.op), s.op "
                       "FROM ledger l LEFT JOIN shapes s USING (op)", (self.precise_from,))
        wrong = []
        for op, amount, kind, reference, ratio, precise, count, found in cursor.fetchall():
            right = (found and count == 1 and kind == ("small" if amount < 500 else "large")
                     and reference in (str(amount), f"k{amount}")
                     and (not precise or ratio == amount / 7))
            if not right:
                wrong.append(f"operation {op} of {amount}: its row in shapes is kind {kind}, "
                             f"reference {reference}, ratio {ratio}, of {count} rows")
        return wrong


def alter(site, *statements):
    """All or nothing; False where PostgreSQL is away, or does not come to it."""
    try:
        site.postgres.server.ask("SET lock_timeout = '2s'; SET synchronous_commit = on; BEGIN; " +
                                 "; ".join(statements) + "; COMMIT")
        return True
    except psycopg2.Error:
        return False


def done(site, *statements):
    yield from until(lambda: alter(site, *statements))


@fault("tables", 5, rare=10, lasts=1, world="migrations")
def enum_replaced(site, chance):
    yield from done(
        site, "ALTER TYPE kind RENAME TO kind_before",
        "CREATE TYPE kind AS ENUM ('small', 'medium', 'large')",
        "ALTER TABLE shapes ALTER COLUMN kind TYPE kind USING kind::text::kind",
        "DROP TYPE kind_before")


@fault("tables", 3, rare=4, lasts=1, world="migrations")
def column_becomes_text(site, chance):
    """And the handler's next version writes text that is no number."""
    if not (site.folder / "reference-is-text").exists():
        yield from done(site, "ALTER TABLE shapes ALTER COLUMN reference TYPE text")
        (site.folder / "reference-is-text").touch()
    yield 0.1


@fault("tables", 3, rare=4, lasts=1, world="migrations")
def column_added(site, chance):
    if not (site.folder / "has-note").exists():
        yield from done(site, "ALTER TABLE shapes ADD COLUMN IF NOT EXISTS note text DEFAULT ''")
        (site.folder / "has-note").touch()
    yield from done(site, f"ALTER TABLE shapes ADD COLUMN extra{chance.randrange(10 ** 9)} int",
                    "ALTER TABLE shapes ALTER COLUMN made_at SET DEFAULT clock_timestamp()")


@fault("all workers", 3, rare=3, lasts=4, world="migrations")
def column_becomes_precise(site, chance):
    """With all workers stopped, as the docs ask for."""
    for worker in site.fleet.all:
        worker.leave()
    yield from until(lambda: not any(worker.runs() for worker in site.fleet.all))
    yield from done(site, "ALTER TABLE shapes ALTER COLUMN ratio TYPE double precision")
    if site.world.precise_from is None:
        yield from until(lambda: answered(site))
    for worker in site.fleet.all:
        worker.start()


def answered(site):
    try:
        site.world.precise_from = site.postgres.server.ask("SELECT clock_timestamp()::text")[0][0]
        return True
    except psycopg2.Error:
        return False
