"""The other reasons to halt, each by its true cause at a random moment, and each ended by any of the
decisions that it allows: `operators` has the first four, `calls` those of calls, `logs` a topic made again.

All keys are kept for the whole run. So whatever is decided, no operation takes effect twice, but where an
operator let another scope of keys in. None is lost, but by `skip` and where Kafka deleted what was unsettled.
"""

import collections
import time

import psycopg2
from confluent_kafka import KafkaException

import acls
from checker import Checker
from faults import fault, until
from operators import Operator, fitting
from world_logs import read_whole, stop_workers
from world_rights import OWN, did
from worlds import World, world

# Reason -> decisions that end it. `retry` where the cause is still there halts again.
DECISIONS = {
    "checkpoint_missing": ("accept_kafka", "earliest", "retry"),
    "other_store": ("same_topic", "retry"),
    "offset_unproven": ("same_topic", "recreated", "retry"),
    "other_cluster": ("same_topic", "recreated", "retry"),
    "offset_out_of_range": ("earliest", "recreated", "retry"),
    "key_spec_changed": ("accept", "retry"),
    "unknown_below_highest": ("run", "skip", "retry"),
    "statement_refused": ("skip", "retry"),
    "unexpected_error": ("skip", "retry"),
    "cannot_account": ("skip", "retry"),
    "unreadable": ("skip", "retry"),
    "store_copied": ("moved", "copy", "retry"),
}
LEAVE_OUT = {"statement_refused", "unexpected_error", "cannot_account"}  # `skip` of one that can be read
BEGIN_AGAIN = {"recreated", "earliest", "copy", "accept_kafka"}
ORIGINAL = "original"
WITHIN_S = 20
REFUSED = (1, 2)  # exit codes


class DecisionsChecker(Checker):
    def late(self):
        """What was left out or given up, too, if a log is begun again."""
        return {at for at in self.letters} | {
            e.at for es in self.effects.values() for e in es if self.site.skipped(e.at)}


@world
class Decisions(World):
    name = "decisions"
    checker = DecisionsChecker
    variant = {"compacted": False, "lose_tail": False, "small_disk": False, "pooler": False}
    deeds = {"book": 900, "slow": 15, "flaky": 15, "reject": 10, "throw": 5, "until mended": 10, "no key": 5}
    fails = {"unreadable": set()}
    halts = set(DECISIONS)
    rate = 60
    only_probe = False  # databases and offsets are put in place of others
    audited = False
    drifts = False
    shrinks = True
    except_faults = ("point-in-time-restore", "replica-promoted", "message-that-kills", "operator-skips",
                     "partitions-added", "broker-frozen-long")

    def __init__(self, site):
        super().__init__(site)
        self.rescopes = site.options.variant.get("rescopes", self.chance.random() < 0.5)  # another key spec
        self.new_spec = self.respecified = False
        if not self.rescopes:  # such a message has a key by the other spec
            self.deeds = {deed: weight for deed, weight in self.deeds.items() if deed != "no key"}
        self.accepted = {}  # partition -> the lowest checkpoint at which new keys were accepted
        self.copies = 0     # of the database
        self.on_copy = False
        self.behind = {}    # partition -> the original's checkpoint
        self.binding = 0    # decisions before this one went with the database

    def configure(self, config):
        if self.new_spec and self.rescopes:
            config["routes"][0]["scope"] = "another"
        elif self.new_spec:  # another rule, that leads to the same keys
            config["routes"][0] |= {"key": {"json": "/op"}, "missing_key": "reject"}

    def began(self):
        self.operator = Operator(self.site, self.decide, patience=(0, 3))
        self.site.operators.append(self.operator)

    def decide(self, halt):
        fits = fitting(DECISIONS, halt, self.site.healed)
        if not fits and halt.reason in DECISIONS:
            fits = ["retry"]
        decision = self.chance.choice(fits) if fits else None
        if decision == "accept":
            at = checkpoints(self.site).get(halt.partition)
            if at is None:
                return None
            self.accepted[halt.partition] = min(at, self.accepted.get(halt.partition, at))
        elif decision == "recreated" or halt.reason == "checkpoint_missing":
            self.accepted[halt.partition] = 0  # no checkpoint is left that has a key spec
        return decision

    def turn(self):
        self.operator.turn()

    def healed(self):
        for statement in ("ALTER TABLE IF EXISTS ledger_away RENAME TO ledger", *(give for _, give in OWN)):
            did(self.site, statement)
        self.site.replay_all()

    def complaints(self, checker, cursor):
        scoped = self.respecified and self.rescopes
        messages = collections.Counter(m.op for m in checker.messages)
        times = collections.Counter((op, e.at) for op, es in checker.effects.items() for e in es)
        said = []
        for (op, at), count in times.items():
            accepted = scoped and self.accepted.get(at[0], at[1] + 1) <= at[1]
            if scoped and (accepted or messages[op] > 1):
                self.again[op] = 1
            if count > 1 + accepted:
                said.append(f"{at} of operation {op} took effect {count} times, and nobody accepted other keys "
                            f"for it: {self.accepted}")
        return said + self.run_in_spite_of_skip({at for _, at in times}, checker)

    def run_in_spite_of_skip(self, took_effect, checker):
        skipped = {}
        for halt, decision, code in self.operator.decided[self.binding:]:
            at = halt.partition, halt.offset
            if decision == "skip" and halt.reason in LEAVE_OUT and code == 0:
                skipped[at] = halt
            elif decision in BEGIN_AGAIN and code not in REFUSED:
                skipped = {} if decision == "copy" else {
                    at: of for at, of in skipped.items() if at[0] != halt.partition}
        return [f"{at} was skipped, and took effect: {halt}; letter {checker.letters.get(at)}"
                for at, halt in skipped.items() if at in took_effect]


def checkpoints(site):
    try:
        return dict(site.postgres.server.ask(
            "SELECT partition, next_offset FROM hapax.checkpoints WHERE next_offset IS NOT NULL"))
    except psycopg2.Error:
        return {}


def stopped(site, chance):
    """All workers, some of them in the middle of it."""
    yield from stop_workers(site, [worker for worker in site.fleet.all if chance.random() < 0.6])


def started(site):
    for worker in site.fleet.all:
        worker.start()


def any_of(met, seconds=WITHIN_S):
    """Waits until it is met, or as long as that."""
    deadline = time.monotonic() + seconds
    yield from until(lambda: met() or time.monotonic() > deadline)


# ---- a deploy

@fault("all workers+deploy", 0.001, rare=2.5, lasts=4, world="decisions")
def key_spec_deployed(site, chance):
    """Deployed over workers that are killed, and perhaps taken back."""
    world = site.world
    for _ in range(chance.choice([1, 2])):
        yield from stopped(site, chance)
        world.new_spec = not world.new_spec
        world.respecified = True
        for worker in site.fleet.all:
            worker.write(site.variant)
        started(site)
        site.say(f"  the key spec is the {'new' if world.new_spec else 'old'} one")
        yield chance.uniform(1, 5)


# ---- PostgreSQL

def database(site, *statements):
    """With no session but this one. True where all was done."""
    server = site.postgres.server
    try:
        connection = psycopg2.connect(server.url().rpartition("/")[0] + "/template1", connect_timeout=3)
    except psycopg2.Error:
        return False
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IS NOT NULL "
                           "AND pid <> pg_backend_pid()")
            for statement in statements:
                cursor.execute(statement)
        return True
    except psycopg2.Error as error:
        site.say(f"  {error}".rstrip())
        return False
    finally:
        connection.close()


@fault("all workers+postgres", 0.001, rare=2.5, lasts=6, world="decisions")
def database_copied(site, chance):
    """Workers find a logical copy at the place of the database. It is that, moved; or a copy that they shall not
    have, and later the original is back."""
    world = site.world
    yield from stopped(site, chance)
    if world.on_copy and chance.random() < 0.7:
        yield from until(lambda: database(site, "DROP DATABASE IF EXISTS postgres"))
        yield from until(lambda: database(site, f"ALTER DATABASE {ORIGINAL}{world.copies} RENAME TO postgres"))
        world.on_copy, world.binding = False, len(world.operator.decided)
        site.say("  the original database is back")
    else:
        world.copies += 1
        world.on_copy, world.binding = True, len(world.operator.decided)
        world.behind = {p: min(at, world.behind.get(p, at)) for p, at in checkpoints(site).items()}
        original = f"{ORIGINAL}{world.copies}"
        yield from until(lambda: database(site, f"ALTER DATABASE postgres RENAME TO {original}"))
        yield from until(lambda: database(site, f"CREATE DATABASE postgres TEMPLATE {original}"))
        site.say("  the database is a copy")
    started(site)
    yield chance.uniform(4, 9) if world.on_copy else 1  # it is used


@fault("postgres", 0.001, rare=2, lasts=3, world="decisions")
def table_missing(site, chance):
    """Of the handler, as if a migration was forgotten."""
    yield from any_of(lambda: did(site, "ALTER TABLE ledger RENAME TO ledger_away"))
    yield chance.uniform(0.5, 4)
    yield from until(lambda: did(site, "ALTER TABLE IF EXISTS ledger_away RENAME TO ledger"))


@fault("postgres", 0.001, rare=2, lasts=3, world="decisions")
def right_missing(site, chance):
    """Of hapax, in its own tables."""
    take, give = chance.choice(OWN[:-1])
    site.say(f"  {take}")
    yield from any_of(lambda: did(site, take))
    yield chance.uniform(0.5, 4)
    yield from until(lambda: did(site, give))


# ---- Kafka

@fault("all workers+kafka", 0.001, rare=2.5, lasts=6, world="decisions")
def cluster_moved(site, chance):
    """The brokers' disks come to another cluster: all offsets are the same."""
    yield from stopped(site, chance)
    for broker in site.kafka.brokers:
        broker.stop()
    yield from until(lambda: not any(broker.process.runs() for broker in site.kafka.brokers))
    name = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=22))
    for broker in site.kafka.brokers:
        facts = broker.folder / "data/meta.properties"
        facts.write_text("".join(f"cluster.id={name}\n" if line.startswith("cluster.id=") else line
                                 for line in facts.read_text().splitlines(True)))
        broker.start()
    yield from until(lambda: all(broker.ready() for broker in site.kafka.brokers))
    started(site)
    yield 1


@fault("all workers+kafka", 0.001, rare=2.5, lasts=5, world="decisions")
def offsets_expired(site, chance):
    """Kafka has none of the group any more."""
    yield from stopped(site, chance)

    def gone():
        acls.delete_group(site.kafka.bootstrap, site.group)
        reader = site.reader()
        try:
            reader.extend()
            return all(offset < 0 for offset in reader.committed().values())
        except (KafkaException, KeyError):
            return False
        finally:
            reader.close()
    yield from any_of(gone)
    site.say(f"  the group's offsets are {'gone' if gone() else 'still there'}")
    started(site)
    yield 1


@fault("all workers+kafka", 0.001, rare=2, lasts=5, world="decisions")
def records_deleted(site, chance):
    """Before they were processed."""
    yield from stopped(site, chance)
    yield chance.uniform(0.3, 1.5)
    found, read = {}, []

    def known():
        found.update(checkpoints(site))
        read[:] = found and read_whole(site, site.topic) or []
        return read
    yield from any_of(known)
    behind = [m for m in read if m.offset >= found.get(m.partition, m.offset + 1)]
    if behind:
        last = chance.choice(behind)
        partition, below = last.partition, last.offset + 1
        low = min(found[partition], site.world.behind.get(partition, below))
        site.skips.append((partition, low, below))
        site.world.gone += [m for m in read if m.partition == partition and m.offset < below]
        yield from until(lambda: acls.delete_records(site.kafka.bootstrap, site.topic, partition, below))
        site.say(f"  Kafka deleted partition {partition} below {below}; its checkpoint is {found[partition]}")
    started(site)
    yield 1


@fault("message", 0.001, rare=3, lasts=1, world="decisions")
def unreadable_message(site, chance):
    """It has more headers than a worker takes."""
    site.plain.wanted.append("unreadable")
    yield 1
