"""The handler publishes what it booked, and the checker reads the outbound topic.

It holds the topic against the handler's table of runs, operation by operation: P1 to P5 of
docs/outbox.md. Repeats are fine while things break, if they are equal. In the calm at the end none is.
With transactions, which the seed draws, none is ever (P2+).
If PostgreSQL was taken back, the topic also holds records of runs that it lost. They must have the same
key and account, and the order is that of the runs that stand.
"""

import collections
import hashlib
import json
import random
import subprocess
import time

import psycopg2
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic

from faults import fault
from worlds import World, world

TOPIC = "booked"
PARTITIONS = 3
LEASE_S = 10
DRAIN_S = 30
HANGS_S = 60
# A record that waits so long while so many others pass was passed over, and waits for the sweep.
PASSED_OVER_S, PASSED_BY, FEW = 20, 500, 200
CALM = 200    # records
AUDIT_TIMEOUT_S = 120


@fault("relay", 0.001, rare=4, lasts=LEASE_S + 4, world="publish")
def relay_frozen(site, chance):
    """The relay stands still for longer than its lease, then wakes up with records in hand."""
    try:
        holders = site.postgres.server.ask("SELECT split_part(holder, ' ', 1) FROM hapax.leases "
                                           "WHERE starts_with(name, 'outbox of ')")
    except psycopg2.Error:
        return
    for worker in site.fleet.all:
        if [(worker.name,)] == holders and worker.runs():
            site.say(f"  the relay is that of {worker.name}")
            worker.freeze()
            yield LEASE_S + chance.uniform(1, 3)
            worker.thaw()


def field(text):
    return len(text.encode()).to_bytes(8, "big") + text.encode()


def published_key(scope, key):
    """As docs/outbox.md defines it; shares no code with hapax."""
    fields = ("hapax-publish-1", scope, "", key, "name", "booked")
    return hashlib.sha256(b"".join(map(field, fields))).hexdigest()


@world
class Publish(World):
    name = "publish"
    ledger = """
CREATE TABLE booked (nr bigserial, op text, account text, run text);
GRANT SELECT, INSERT ON booked TO hapax_worker;
GRANT USAGE ON booked_nr_seq TO hapax_worker;
-- Some commits take their time, with ids that others pass.
CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN IF random() < 0.03 THEN PERFORM pg_sleep(0.3); END IF; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slowly AFTER INSERT ON booked DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION slowly();
-- Only for the mutant that draws ids early.
GRANT USAGE ON SEQUENCE hapax.outbox_id_seq TO hapax_worker;
"""

    def __init__(self, site):
        super().__init__(site)
        self.variant = {"transactions": random.Random(f"{site.seed} transactions").random() < 0.4}
        self.look_at = self.since = self.newest = 0
        self.first = None
        self.passed_over = set()
        self.waits = self.left_open = False  # records at the end; for a transaction of Kafka's
        self.late = []

    def configure(self, config):
        config["publish"] = {"topics": [TOPIC], "transactions": self.site.variant["transactions"]}
        config["routes"][0]["options"]["publish"] = TOPIC

    def began(self):
        topic = NewTopic(TOPIC, PARTITIONS, self.site.kafka.copies, config={"retention.ms": "-1"})
        self.site.admin.create_topics([topic], operation_timeout=20)[TOPIC].result(30)

    def turn(self):
        if time.monotonic() < self.look_at:
            return
        self.look_at = time.monotonic() + 1
        try:
            left, first, newest = self.site.postgres.server.ask(
                "SELECT count(*), min(id), (SELECT last_value FROM hapax.outbox_id_seq) "
                "FROM hapax.outbox")[0]
        except psycopg2.Error:
            return
        # None passes in an outage. PostgreSQL that was taken back begins again.
        if left > FEW or first != self.first or newest < self.newest:
            self.first, self.newest, self.since = first, newest, time.monotonic()
        elif first and newest > self.newest + PASSED_BY and \
                time.monotonic() > self.since + PASSED_OVER_S:
            self.passed_over.add(first)

    def healed(self):
        self.healed_at = time.monotonic()

    def ended(self):
        complaints = [f"record {n} waited for the sweep while others passed"
                      for n in sorted(self.passed_over)]
        self.late = self.empty("when all was drained")
        # A relay that was frozen has woken by now, and must have found that it is none any more.
        time.sleep(max(0, self.healed_at + 2 * LEASE_S - time.monotonic()))
        for n in range(CALM):
            self.site.postgres.server.ask(
                "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, "
                "idempotency_key, source_topic, source_generation, source_partition, source_offset) "
                "VALUES (%s, %s, 'calm', %s, '[]', %s, %s, 1, 0, 0)",
                self.site.group, TOPIC, json.dumps({"op": f"calm {n}", "run": ""}).encode(),
                f"calm {n}", self.site.topic)
        self.late += self.empty("in the calm")
        return complaints

    def empty(self, when):
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline:
            left = self.site.postgres.server.ask("SELECT count(*), min(id) FROM hapax.outbox")[0]
            if not left[0]:
                return []
            time.sleep(0.1)
        self.waits = True
        return [f"{left[0]} published records were not sent {when}, the first is {left[1]}"]

    def reader(self, group, isolation="read_committed"):
        return Consumer({"bootstrap.servers": self.site.kafka.bootstrap, "group.id": group,
                         "isolation.level": isolation, "enable.auto.commit": False,
                         "enable.partition.eof": True, "log_level": 0})

    def has_open_transaction(self):
        """In the topic, or over the marker of its batches."""
        committed, all_there = self.reader("reader"), self.reader("reader", "read_uncommitted")
        marker = self.reader(f"hapax-outbox/{self.site.group}/{TOPIC}")
        try:
            places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
            if any(committed.get_watermark_offsets(place, timeout=10)[1] <
                   all_there.get_watermark_offsets(place, timeout=10)[1] for place in places):
                return True
            return any(found.error for found in marker.committed(places[:1], timeout=10))
        except KafkaException:  # the broker is there: the marker is no stable offset
            return True
        finally:
            for consumer in committed, all_there, marker:
                consumer.close()

    def kafka_left_a_transaction_open(self):
        """As KAFKA-20734 does, of which no relay knows a way out. No relay runs any more. Kafka ends
        what a relay left open after 10 s, and looks for it every 10 s."""
        deadline = time.monotonic() + HANGS_S
        while self.has_open_transaction():
            if time.monotonic() > deadline:
                return True
            time.sleep(1)
        return False

    def records(self):
        """Those of each partition, in the order of the log."""
        consumer = self.reader("reader")
        found = []
        for partition in range(PARTITIONS):
            place = TopicPartition(TOPIC, partition, 0)
            end = consumer.get_watermark_offsets(place, timeout=10)[1]
            consumer.assign([place])
            deadline, at = time.monotonic() + 60, 0
            while at < end and time.monotonic() < deadline:
                for record in consumer.consume(1000, 0.5):
                    if not record.error():
                        found.append(record)
                        at = record.offset() + 1
                    elif record.error().code() == KafkaError._PARTITION_EOF:
                        at = end  # what ends a transaction is no record
        consumer.close()
        return found

    def complaints(self, checker, cursor):
        cursor.execute("SELECT op, account, run FROM booked ORDER BY nr")
        booked = {op: (account, run) for op, account, run in cursor.fetchall()}
        cursor.execute("SELECT DISTINCT scope FROM hapax.checkpoints WHERE topic = %s",
                       (self.site.topic,))
        scope = cursor.fetchone()[0]
        cursor.execute("SELECT topic, row_id, reason, detail FROM hapax.outbox_halts")
        said = [f"publishing was halted: {halt}" for halt in cursor.fetchall()]
        self.left_open = (self.waits and self.site.variant["transactions"] and
                          self.kafka_left_a_transaction_open())
        unsent = set()
        if self.left_open:  # then what waits is in PostgreSQL still
            self.site.say("  NOT TESTED to the end: Kafka has left a transaction open (KAFKA-20734)")
            cursor.execute("SELECT convert_from(payload, 'UTF8') FROM hapax.outbox")
            unsent = {json.loads(payload)["op"] for payload, in cursor.fetchall()}
        else:
            said += self.late
        accounts = {message.op: message.account for message in checker.messages}
        found = Published(scope, booked, accounts, self.site.taken_back,
                          self.site.variant["transactions"])
        for record in self.records():
            found.add(record)
        said += found.complaints(unsent, self.left_open)
        if not self.left_open:
            said += self.audit_differs(found)
        self.site.say(f"  {len(found.seen)} records published, {found.repeats} repeats, "
                      f"{found.lost_runs} of runs that PostgreSQL lost")
        return said

    def audit_differs(self, found):
        """`hapax audit` must account for each record, and see the repeats that are there."""
        said = subprocess.run([self.site.hapax, "audit", "-c", self.site.fleet.all[0].config, "--topic",
                               TOPIC, "--json"], capture_output=True, text=True, timeout=AUDIT_TIMEOUT_S)
        if said.returncode not in (0, 1):
            return [f"hapax audit: exit code {said.returncode}: {said.stderr}"]
        told = json.loads(said.stdout)
        repeats = sum(one["repeats"] for one in told["outbound"]["partitions"])
        complaints = []
        missing = told["outbound"]["missing"]
        hidden = missing is None and repeats > 0  # behind repeats; the checker knows each record
        if not told["published"]["fit"] or (missing != 0 and not hidden):
            complaints.append(f"hapax audit: {told['published']}, {missing} are missing")
        # Two runs of an operation have one key.
        ours = found.repeats + len(found.seen) - len({op for op, _ in found.seen})
        if repeats != ours:
            complaints.append(f"hapax audit finds {repeats} repeats, the checker {ours}")
        return complaints


class Published:
    """What the topic holds, against what was booked."""

    def __init__(self, scope, booked, accounts, taken_back, transactions):
        self.scope = scope
        self.booked = booked          # op -> (account, the run that stands)
        self.accounts = accounts      # of every operation
        self.taken_back = taken_back  # runs were lost
        self.transactions = transactions
        self.seen = {}                # (op, run) -> its first record
        self.first = collections.defaultdict(list)  # account -> operations, each once: runs that stand
        self.calm = collections.Counter()
        self.repeats = self.lost_runs = 0
        self.said = []

    def add(self, record):
        what = json.loads(record.value())
        op, run, key = what["op"], what["run"], record.key().decode()
        if op.startswith("calm "):
            self.calm[op] += 1
            return
        bytes_of = (key, record.value(), record.headers())
        at = f"{record.partition()}/{record.offset()}"
        where = f"record {at} of operation {op}"
        if (op, run) in self.seen:
            self.repeats += 1
            before, first_at = self.seen[op, run]
            # What PostgreSQL lost is also that the record was sent.
            if self.transactions and not self.taken_back:
                self.said.append(f"{where}: it came before, at {first_at}")
            if before != bytes_of:
                self.said.append(f"{where}: a repeat differs: {bytes_of}, before {before}")
            return
        self.seen[op, run] = bytes_of, at
        self.judge_run(where, op, run, key)
        found = dict(record.headers()).get("idempotency-key", b"").decode()
        if found != published_key(self.scope, op):
            self.said.append(f"{where}: its idempotency-key is {found}, not made from the operation")

    def judge_run(self, where, op, run, key):
        if self.booked.get(op) == (key, run):
            self.first[key].append(op)
        elif self.taken_back and self.accounts.get(op) == key:
            self.lost_runs += 1
        elif op not in self.booked:
            self.said.append(f"{where}: published, and nothing was booked")
        else:
            self.said.append(f"{where}: published by {key, run}, and what stands was booked by "
                             f"{self.booked[op]}: PostgreSQL lost the one that published")

    def complaints(self, unsent, left_open):
        said = list(self.said)
        said += [f"operation {op}: booked, and never published" for op, (_, run) in
                 self.booked.items() if (op, run) not in self.seen and op not in unsent]
        for op in (f"calm {n}" for n in range(CALM)):
            if self.calm[op] != 1 and not (left_open and not self.calm[op]):
                said.append(f"{op}: {self.calm[op]} records, not one, though nothing was broken")
        wanted = collections.defaultdict(list)
        for op, (account, run) in self.booked.items():
            if (op, run) in self.seen:
                wanted[account].append(op)
        for account, ops in wanted.items():
            if self.first[account] != ops:
                n = next((n for n, (a, b) in enumerate(zip(self.first[account], ops)) if a != b), 0)
                said.append(f"account {account}: published out of order: "
                            f"{self.first[account][n:n + 3]}, booked {ops[n:n + 3]}")
        return said
