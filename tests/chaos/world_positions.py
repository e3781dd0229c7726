"""Routes whose key is the position: each record takes effect once, and equal payloads are two effects.

So the checker counts by partition and offset. Transactions take their time here, in the handler and
at COMMIT, and PostgreSQL lets idle ones stand. So workers and backends are often frozen inside one.
"""

import collections
import os
import signal

import psycopg2

from checker import Checker
from faults import fault
from operators import Operator
from worlds import World, world


class PositionsChecker(Checker):
    def __init__(self, site):
        super().__init__(site)
        del self.fails["no key"]  # needs none

    def check_operations(self):
        found = collections.defaultdict(list)
        for effects in self.effects.values():
            for effect in effects:
                found[effect.at].append(effect)
        for at in found.keys() - self.present:
            self.complain(f"{at}: has an effect {found[at]}, and Kafka has no committed message "
                          "there: aborted, or never sent")
        for message in self.messages:
            self.check_record(message, found.get(message.at, []))
        self.operations = len({message.op for message in self.messages})

    def check_record(self, message, effects):
        letter = self.letters.get(message.at)
        replayed = letter is not None and letter.ended_as == "replayed"
        where = (f"operation {message.op} ({message.deed}) at {message.at}: effects {effects}, dead "
                 f"letter {letter}, it ran {self.runs.get(message.at, {})}")
        if len(effects) > 1:
            self.complain(f"{where}: expected one effect, took {len(effects)}")
        if any((effect.op, effect.payload) != (message.op, message.payload) for effect in effects):
            self.complain(f"{where}: the effect is another message's")
        if effects and self.fails_here(message):
            self.complain(f"{where}: can never work, and took effect")
        if effects and letter and not replayed:
            self.complain(f"{where}: an effect beside a dead letter that nobody replayed")
        if not effects and (replayed or (letter is None and not self.site.skipped(message.at))):
            self.complain(f"{where}: LOST: expected one effect, found none")
        if letter:
            self.check_letter(message, letter, self.reasons(message, [], []), where)

    def fails_here(self, message):
        if message.deed == "fails elsewhere":
            return message.partition != int(message.account[1:]) % self.site.world.partitions
        return message.deed in self.fails

    def reasons(self, message, effects, same):
        if message.deed == "fails elsewhere" and not self.fails_here(message):
            return set()
        return super().reasons(message, effects, same)

    def verdict(self, message, places):
        if message.at in places:
            return "completed"
        if message.at in self.letters:
            return "dead_letter"
        return "skipped" if self.site.skipped(message.at) else "unaccounted"

    def comparable(self, counts):
        """Nothing tells what took effect from what an operator left out, if he skipped over both."""
        found = collections.Counter()
        skipped = self.site.skips or self.site.world.rewound
        for name, n in counts.items():
            found["passed" if skipped and name in ("completed", "skipped") else name] += n
        return dict(found)


@world
class Positions(World):
    name = "positions"
    checker = PositionsChecker
    deeds = {"book": 770, "slow": 90, "flaky": 25, "swallow": 10, "fails elsewhere": 20,
             "reject": 20, "throw": 8, "until mended": 12, "no key": 10}
    ledger = """
CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN IF random() < 0.01 THEN PERFORM pg_sleep(0.3); END IF; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slowly AFTER INSERT ON ledger DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION slowly();
"""
    halts = {"unknown_below_highest"}  # after a rewind
    except_faults = ("operator-rewinds",)  # a rewind of its own takes its place

    def __init__(self, site):
        super().__init__(site)
        self.rewound = set()  # partitions
        # With 8s a worker that was frozen inside a transaction finds it open.
        self.variant = {"compacted": False, "batch": self.chance.choice([1, 20]),
                        "idle": self.chance.choice(["2s", "8s"])}

    def configure(self, config):
        config["routes"][0]["key"] = "position"
        config["postgres"]["idle_in_transaction_timeout"] = self.site.variant["idle"]

    def began(self):
        self.operator = Operator(self.site, self.skip_back)
        self.site.operators.append(self.operator)

    def turn(self):
        self.operator.turn()

    def is_of(self, effect, message):
        return effect.at == message.at

    def skip_back(self, halt):
        """A rewind was a mistake: the partition goes on at its highest checkpoint, where it was."""
        if halt.reason != "unknown_below_highest":
            return None
        site, losses = self.site, self.site.postgres.losses
        try:
            at, highest = site.postgres.server.ask("SELECT next_offset, highest FROM hapax.checkpoints "
                                                   "WHERE partition = %s", halt.partition)[0]
        except (psycopg2.Error, IndexError):
            return None
        if at == highest:
            return "retry"
        site.moves += 1
        code = site.command("offsets", "skip", f"{site.topic}/{halt.partition}", "--to", str(highest))
        site.moves += 1
        site.say(f"  partition {halt.partition} goes back to {highest}: exit code {code}")
        if site.postgres.losses != losses:  # the highest may have been lost meanwhile
            site.skips.append((halt.partition, at, highest))
        return "retry" if code == 0 else None

    def complaints(self, checker, cursor):
        cursor.execute("SELECT DISTINCT partition FROM hapax.halts WHERE reason = 'unknown_below_highest'")
        said = [f"partition {partition} was halted as if it were rewound, and nobody did"
                for (partition,) in cursor.fetchall() if partition not in self.rewound]
        cursor.execute("SELECT count(*), min(last) FROM hapax.positions")
        left, lowest = cursor.fetchone()
        if left:
            said.append(f"{left} positions are kept behind the last checkpoint, such as {lowest}")
        cursor.execute("SELECT partition, kafka_offset, status FROM hapax.idempotency_keys")
        for partition, offset, status in cursor.fetchall():
            letter = checker.letters.get((partition, offset))
            wanted = letter and ("completed" if letter.ended_as == "replayed" else "failed")
            if status != wanted:
                said.append(f"{partition, offset}: expected the key to be {wanted}, found {status}; "
                            f"its dead letter is {letter}")
        return said


@fault("operator", 6, world="positions")
def operator_rewinds_by_mistake(site, chance):
    partition = chance.randrange(site.partitions)
    site.world.rewound.add(partition)
    site.operate("offsets", "rewind", partition, lambda at: max(0, at - chance.randrange(1, 300)))
    yield 0.1


@fault("all workers", 14, world="positions")
def zombies_in_turn(site, chance):
    """One stands still until others have its partitions. Then these stand still, and it wakes up."""
    first = chance.choice(site.fleet.all)
    others = [worker for worker in site.fleet.all if worker is not first]
    first.freeze()
    yield chance.uniform(2.5, 6)
    for worker in others:
        worker.freeze()
    first.thaw()
    yield chance.uniform(0.1, 6)
    for worker in others:
        worker.thaw()
    yield 1


@fault("postgres", 14, world="positions")
def backend_frozen(site, chance):
    """A transaction stands still in PostgreSQL, and its worker is gone, cut off, or stands still, too."""
    found = site.postgres.server.ask("SELECT pid, split_part(application_name, ' ', 2) FROM "
                                     "pg_stat_activity WHERE usename = 'hapax_worker' AND "
                                     "xact_start IS NOT NULL ORDER BY pid")
    if not found:
        return
    pid, name = chance.choice(found)
    worker = next((worker for worker in site.fleet.all if worker.name == name), None)
    os.kill(pid, signal.SIGSTOP)
    how = chance.choice(["kill", "cut", "zombie"]) if worker else "cut"
    if how == "kill":
        worker.kill()
    elif how == "cut":
        site.proxy.order("postgres", "cut", 40)
    yield chance.uniform(1, 5)
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass
    yield 0.1
