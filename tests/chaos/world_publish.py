"""The handler publishes what it booked, and the checker reads the outbound topic.

It holds the topic against the handler's table of runs, operation by operation: P1 to P5 of
docs/outbox.md. Repeats are fine while things break, if they are equal. In the calm at the end none is.
With --variant '{"transactions": true}' none is ever (P2+).
"""

import collections
import hashlib
import json
import time

import psycopg2
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import NewTopic

from faults import fault
from worlds import World, world

TOPIC = "booked"
PARTITIONS = 3
LEASE_S = 10
DRAIN_S = 30
# A record that waits so long while so many others pass was passed over, and waits for the sweep.
PASSED_OVER_S, PASSED_BY, FEW = 20, 500, 200
CALM = 200    # records


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
    variant = {"transactions": False}
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
    # They take back what was published: a rerun may then compute something else (P5).
    except_faults = ("point-in-time-restore", "replica-promoted")

    def __init__(self, site):
        super().__init__(site)
        self.look_at = self.since = self.newest = 0
        self.first = None
        self.passed_over = set()

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
        if left > FEW or first != self.first:  # none passes in an outage
            self.first, self.newest, self.since = first, newest, time.monotonic()
        elif first and newest > self.newest + PASSED_BY and \
                time.monotonic() > self.since + PASSED_OVER_S:
            self.passed_over.add(first)

    def healed(self):
        self.healed_at = time.monotonic()

    def ended(self):
        complaints = [f"record {n} waited for the sweep while others passed"
                      for n in sorted(self.passed_over)]
        complaints += self.empty("when all was drained")
        # A relay that was frozen has woken by now, and must have found that it is none any more.
        time.sleep(max(0, self.healed_at + 2 * LEASE_S - time.monotonic()))
        for n in range(CALM):
            self.site.postgres.server.ask(
                "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, "
                "idempotency_key, source_topic, source_generation, source_partition, source_offset) "
                "VALUES (%s, %s, 'calm', %s, '[]', %s, %s, 1, 0, 0)",
                self.site.group, TOPIC, json.dumps({"op": f"calm {n}", "run": ""}).encode(),
                f"calm {n}", self.site.topic)
        return complaints + self.empty("in the calm")

    def empty(self, when):
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline:
            left = self.site.postgres.server.ask("SELECT count(*), min(id) FROM hapax.outbox")[0]
            if not left[0]:
                return []
            time.sleep(0.1)
        return [f"{left[0]} published records were not sent {when}, the first is {left[1]}"]

    def records(self):
        """Those of each partition, in the order of the log."""
        consumer = Consumer({"bootstrap.servers": self.site.kafka.bootstrap, "group.id": "reader",
                             "enable.auto.commit": False, "enable.partition.eof": True,
                             "log_level": 0})
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
        cursor.execute("SELECT nr, op, account FROM booked ORDER BY nr")
        wanted = collections.defaultdict(list)
        for _, op, account in cursor.fetchall():
            wanted[account].append(op)
        cursor.execute("SELECT DISTINCT scope FROM hapax.checkpoints WHERE topic = %s",
                       (self.site.topic,))
        scope = cursor.fetchone()[0]
        cursor.execute("SELECT topic, row_id, reason, detail FROM hapax.outbox_halts")
        said = [f"publishing was halted: {halt}" for halt in cursor.fetchall()]
        first = collections.defaultdict(list)  # account -> operations, each once
        seen, places = {}, {}
        calm = collections.Counter()
        repeats = 0
        for record in self.records():
            what = json.loads(record.value())
            op, key = what["op"], record.key().decode()
            if op.startswith("calm "):
                calm[op] += 1
                continue
            bytes_of = (key, record.value(), record.headers())
            where = f"record {record.partition()}/{record.offset()} of operation {op}"
            if op in seen:
                repeats += 1
                if self.site.variant["transactions"]:
                    said.append(f"{where}: it came before, at {places[op]}")
                if seen[op] != bytes_of:
                    said.append(f"{where}: a repeat differs: {bytes_of}, before {seen[op]}")
                continue
            seen[op] = bytes_of
            places[op] = f"{record.partition()}/{record.offset()}"
            first[key].append(op)
            if op not in booked:
                said.append(f"{where}: published, and nothing was booked")
            elif booked[op] != (key, what["run"]):
                said.append(f"{where}: published by {key, what['run']}, and what stands was booked "
                            f"by {booked[op]}: PostgreSQL lost the one that published")
            found = dict(record.headers()).get("idempotency-key", b"").decode()
            if found != published_key(scope, op):
                said.append(f"{where}: its idempotency-key is {found}, not made from the "
                            "operation")
        said += [f"operation {op}: booked, and never published" for op in booked if op not in seen]
        said += [f"{op}: {calm[op]} records, not one, though nothing was broken"
                 for op in (f"calm {n}" for n in range(CALM)) if calm[op] != 1]
        for account, ops in wanted.items():
            if first[account] != ops and set(first[account]) == set(ops):
                n = next(n for n, (a, b) in enumerate(zip(first[account], ops)) if a != b)
                said.append(f"account {account}: published out of order: {first[account][n:n + 3]}, "
                            f"booked {ops[n:n + 3]}")
        self.site.say(f"  {len(seen)} records published, {repeats} repeats")
        return said
