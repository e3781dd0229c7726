"""One run's servers, workers and producers, and what faults and the checker ask of them."""

import pathlib
import random
import shutil
import subprocess
import tempfile
import time

import psycopg2
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

import disk
import evidence
import worlds
import workers
from kafka_ground import Kafka
from messages import Journal
from pooler import Pooler
from postgres_ground import Postgres
from producers import PlainSender, TransactionalSender
from proxy import Proxy

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND_TIMEOUT_S = 15
DRAIN_S = 240
LEAVE_S = 20
FOR_EVER = "7d"  # longer than any run: each key is there at the end

# Messages go while others of their key come, many before a worker has seen them.
COMPACTING = {"cleanup.policy": "compact", "segment.ms": "2000", "min.cleanable.dirty.ratio": "0.01",
              "min.compaction.lag.ms": "0", "delete.retention.ms": "100"}
KEEPING = {"cleanup.policy": "delete", "retention.ms": "-1"}

LEDGER = """
CREATE TABLE ledger (nr bigserial, op text, account text, amount bigint, payload int, topic text,
                     part int, kafka_offset bigint, booked_at timestamptz DEFAULT now());
CREATE INDEX ON ledger (op);
CREATE TABLE balances (account text, amount bigint NOT NULL DEFAULT 0);
INSERT INTO balances SELECT 'a' || n FROM generate_series(0, {accounts} - 1) n;
CREATE INDEX ON balances (account);
GRANT SELECT, INSERT ON ledger TO hapax_worker;
GRANT USAGE ON ledger_nr_seq TO hapax_worker;
GRANT SELECT, UPDATE ON balances TO hapax_worker;
"""


def variant_of(seed):
    """How the workers are set up in this run."""
    chance = random.Random(f"{seed} variant")
    return {
        "static": chance.random() < 0.35,
        "ordering": chance.choice(["key", "key", "partition", "none"]),
        "batch": chance.choice([1, 1, 20]),
        "assignor": chance.choice(["range", "roundrobin"]),
        "checkpoint_interval": chance.choice(["100ms", "300ms", "1s"]),
        # Commits of handlers answered before they are flushed: a crash takes some back.
        "lose_tail": chance.random() < 0.5,
        "pooler": chance.random() < 0.2,
        # Drawn last: what a seed decided before there were these stays.
        "false_clocks": chance.random() < 0.25 and workers.false_clock() is not None,
        "small_disk": chance.random() < 0.3 and disk.can_be_made(),
        "compacted": chance.random() < 0.15,
        "retention": FOR_EVER,
    }


class Site:
    topic = "orders"
    group = "chaos"
    max_attempts = 4
    max_crashes = 3
    server_settings = {}  # of PostgreSQL, beside those of its ground

    def __init__(self, options, say):
        self.seed = options.seed
        self.say = say
        self.options = options
        self.world = worlds.WORLDS[options.world](self)
        self.variant = {**variant_of(options.seed), **self.world.variant, **options.variant}
        self.partitions = self.world.partitions
        self.build = pathlib.Path(options.build or ROOT / "build/release").resolve()
        self.hapax = self.build / "bin/hapax"
        # A build of the binary alone, such as a mutant's, has the handler of the usual one.
        library = f"lib/lib{self.world.handler}.so"
        own = self.build / library
        self.plugin = own if own.exists() else ROOT / "build/release" / library
        for needed in (self.hapax, self.plugin):
            if not needed.exists():
                raise SystemExit(f"{needed} is not there: build hapax_binary and "
                                 f"{self.world.handler} first")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hapax-chaos-"))
        self.folder.chmod(0o755)
        for name in ("runs", "marks", "calls"):
            (self.folder / name).mkdir()
        self.proxy = self.kafka = self.postgres = self.pooler = self.fleet = None
        self.healed = False
        self.retention_s = workers.seconds_of(self.variant["retention"])
        self.operators = []
        self.moves = 0    # of checkpoints, by an operator
        self.lowered = set()  # partitions whose highest checkpoint he lowered; the probe takes them
        self.taken_back = False  # by a promotion or a restore
        self.skips = []   # (partition, from, to)

    def start(self):
        brokers = range(1, self.options.brokers + 1)
        names = ["postgres", "replica", "pooled"] + [f"kafka{n}" for n in brokers]
        others = self.world.proxied()
        self.proxy = Proxy(self.folder / "proxy.log", [*names, *others])
        self.kafka = Kafka(self.folder, self.options.brokers,
                           [self.proxy.ports[name] for name in names[3:]], self.world.sasl)
        self.postgres = Postgres(self.folder / "postgres", self.variant["lose_tail"],
                                 self.variant["small_disk"],
                                 {**self.server_settings, **self.world.settings})
        self.postgres.prepare(self.hapax, ROOT / "sql/roles.sql",
                              LEDGER.format(accounts=self.world.accounts) + self.world.ledger)
        port = self.postgres.server.port
        if self.variant["pooler"]:
            self.pooler = Pooler(self.postgres.folder, self.proxy.ports["pooled"])
        self.proxy.start({"postgres": self.pooler.port if self.pooler else port,
                          "pooled": port, "replica": port,
                          **{f"kafka{b.node}": b.inner for b in self.kafka.brokers}, **others})
        self.worker_url = self.postgres.server.url("hapax_worker", self.proxy.ports["postgres"])
        self.admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap, "log_level": 0})
        topic = NewTopic(self.topic, self.partitions, self.kafka.copies,
                         config=COMPACTING if self.variant["compacted"] else self.world.topic)
        self.admin.create_topics([topic], operation_timeout=20)[self.topic].result(30)
        self.journal = Journal(self.folder / "journal")
        rate = self.options.rate or self.world.rate or 150
        self.plain = PlainSender(self, rate * 0.8)
        self.transactional = TransactionalSender(self, rate * 0.2)
        count = self.options.workers or self.world.workers
        self.fleet = workers.Fleet(self, count, self.variant)
        self.world.began()

    def reader(self):
        """Of the topic, from its beginning."""
        return evidence.Reader(self.kafka.bootstrap, self.topic, self.group, self.world.shrinks)

    def forgets(self):
        """Whether keys expire while it runs."""
        return self.variant["retention"] != FOR_EVER

    def senders(self):
        return [self.plain, self.transactional] if self.world.produced else []

    def send(self):
        for sender in self.senders():
            sender.start()

    def record_key(self, send):
        """Where the topic is compacted, what is sent again takes the place of what it repeats."""
        of = send.operation
        return (of.op if self.variant["compacted"] else of.account).encode()

    def skipped(self, at):
        """Whether an operator left this message out."""
        return any(p == at[0] and low <= at[1] < high for p, low, high in self.skips) or any(
            operator.skipped(at) for operator in self.operators)

    def command(self, *arguments, group=None):
        """One of hapax's own, as the owner. In the middle of faults it may fail."""
        try:
            said = subprocess.run(
                [self.hapax, *arguments, "-c", self.fleet.of(group or self.group).config, "--why", "chaos", "--who",
                 "chaos", "--yes",
                 "--url", self.postgres.server.url()],
                capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
            with open(self.folder / "commands.log", "a") as log:
                log.write(f"{arguments}: {said.returncode}\n{said.stdout}{said.stderr}\n")
            return said.returncode
        except subprocess.TimeoutExpired:
            return None

    def redirect(self, port):
        """PostgreSQL is there from now on."""
        self.taken_back = True
        self.proxy.order("replica", "target", port)
        self.proxy.order("pooled", "target", port)
        if not self.pooler:
            self.proxy.order("postgres", "target", port)

    def operate(self, noun, verb, partition, where):
        try:
            rows = self.postgres.server.ask(
                "SELECT next_offset FROM hapax.checkpoints WHERE partition = %s", partition)
        except psycopg2.Error:
            return
        if not rows or rows[0][0] is None:
            return
        at, to = rows[0][0], where(rows[0][0])
        self.moves += 1
        if to > at:
            self.skips.append((partition, at, to))
        code = self.command(noun, verb, f"{self.topic}/{partition}", "--to", str(to))
        if to > at and code in (1, 2):
            self.skips.pop()  # refused: nothing was left out
        self.moves += 1
        self.say(f"  {verb} of partition {partition} from {at} to {to}: exit code {code}")

    def start_lost_partitions(self):
        """As an operator does if PostgreSQL was taken back to before a partition's first start, or
        lost that start with its tail."""
        try:
            halts = self.postgres.server.ask("SELECT partition FROM hapax.halts "
                                             "WHERE ended_at IS NULL AND reason = 'checkpoint_missing'")
        except psycopg2.Error:
            return
        for (partition,) in halts if self.taken_back or self.variant["lose_tail"] else ():
            self.moves += 1
            code = self.command("resume", f"{self.topic}/{partition}", "--decision", "earliest")
            self.moves += 1
            self.say(f"  partition {partition} starts again at its earliest: exit code {code}")

    def replay_all(self):
        code = self.command("dead", "replay", "--reason", "attempts_exhausted", "--no-wait")
        self.say(f"  replay of all that was given up after its attempts: exit code {code}")

    def add_partition(self, more_of_them=1):
        """False where Kafka is away."""
        try:
            count = len(self.admin.list_topics(self.topic, timeout=2).topics[self.topic].partitions)
            count += more_of_them - 1
            more = [NewPartitions(self.topic, count + 1)]
            self.admin.create_partitions(more)[self.topic].result(5)
        except KafkaException:
            return False
        self.plain.source.partitions_added(count + 1)
        self.say(f"  the topic has {count + 1} partitions now")
        return True

    def drain(self):
        """Until nothing is left to do; what is, after a bound."""
        for sender in self.senders():
            sender.end()
        self.healed = True
        for sender in self.senders():
            sender.ended(150)
        (self.folder / "mended").touch()
        if self.variant["compacted"]:  # the checker and the audit shall see the same log
            kept = ConfigResource(ConfigResource.Type.TOPIC, self.topic, KEEPING)
            self.admin.alter_configs([kept])[kept].result(30)
        self.world.healed()
        if not self.world.one_log:
            return self.world.drain(DRAIN_S)
        reader = self.reader()
        reader.extend()
        deadline = time.monotonic() + DRAIN_S
        left = "nothing was asked"
        while left and time.monotonic() < deadline:
            self.fleet.keep_alive()
            self.world.turn()
            self.kafka.refuse_dead()
            self.start_lost_partitions()
            left = self.left(reader)
            time.sleep(0.3)
        reader.close()
        return left

    def left(self, reader):
        try:
            ends = {p: reader.end_of(p) for p in reader.seen}
            committed = reader.committed()
            rows = dict(self.postgres.server.ask(
                "SELECT partition, next_offset FROM hapax.checkpoints"))
            replays = self.postgres.server.ask(
                "SELECT count(*) FROM hapax.replays WHERE ended_at IS NULL")[0][0]
        except Exception as error:
            return f"a server does not answer: {error}"
        behind = [f"partition {p}: end {end}, checkpoint {rows.get(p)}, Kafka's offset "
                  f"{committed.get(p)}" for p, end in ends.items()
                  if end > 0 and (rows.get(p) != end or committed.get(p) != end)]
        if replays:
            behind.append(f"{replays} replays are not run")
        return "; ".join(behind)

    def end(self, keep):
        """Whatever state it is in, half started too. Its children die with us at the latest."""
        for worker in self.fleet.all if self.fleet else []:
            if worker.child:
                worker.child.kill()
        for broker in self.kafka.brokers if self.kafka else []:
            broker.kill()
        if self.postgres and self.postgres.server.process.runs():
            self.postgres.server.kill()
        if self.proxy and self.proxy.child:
            self.proxy.child.kill()
        if self.pooler:
            self.pooler.child.kill()
        if not keep:
            if self.postgres:
                self.postgres.disk.unmount()
            shutil.rmtree(self.folder, ignore_errors=True)
