"""The servers of a measurement: a PostgreSQL with fsync, a Kafka, and a database for each turn.

Whole numbers mean something on a quiet machine only. Ratios of one run always do.
"""

import json
import os
import pathlib
import shutil
import sys
import time

import psycopg2
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/chaos"))
from kafka_ground import Kafka  # noqa: E402
from postgres_ground import USER, Server  # noqa: E402
from processes import Child, free_port, run_to_end, wait_until  # noqa: E402

ACCOUNTS = 1000
PARTITIONS = 8
SCHEMA = """CREATE TABLE booked (id bigint NOT NULL, account text NOT NULL,
                                at timestamptz NOT NULL DEFAULT clock_timestamp())"""


class Ground:
    def __init__(self, folder, build, brokers=1):
        self.folder, self.build = folder, build.resolve()
        self.plugin = self.build / "lib/libfigures.so"
        if not self.plugin.exists():
            raise SystemExit(f"{self.plugin} is not there: build hapax_binary and figures first")
        folder.chmod(0o755)
        data = folder / "postgres"
        data.mkdir()
        if os.geteuid() == 0:
            shutil.chown(data, USER, USER)
        self.server = Server(data / "data", {"listen_addresses": "127.0.0.1", "fsync": "on",
                                             "unix_socket_directories": "", "max_wal_size": "4GB"})
        self.server.make()
        self.server.start()
        self.kafka = Kafka(folder, brokers, [free_port() for _ in range(brokers)])
        self.admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap, "log_level": 0})
        wait_until("PostgreSQL", self.server.is_primary, 60)

    def url(self, database):
        return f"postgresql://postgres@127.0.0.1:{self.server.port}/{database}"

    def database(self, name):
        """A new one with hapax's schema and the handlers' table. Returns a session."""
        self.server.ask(f"CREATE DATABASE {name}")
        run_to_end([self.build / "bin/hapax", "migrate", "up", "--url", self.url(name)],
                   self.folder / "migrate.log")
        session = psycopg2.connect(self.url(name))
        session.autocommit = True
        ask(session, SCHEMA)
        return session

    def topic(self, name, partitions=PARTITIONS, on=None):
        """`on`: the broker that has all of it. It is there when this returns."""
        where = {"replica_assignment": [[on]] * partitions} if on else {"replication_factor": 1}
        topic = NewTopic(name, partitions, config={"min.insync.replicas": "1"}, **where)
        self.admin.create_topics([topic])[name].result(30)

    def payments(self, topic, count):
        """Messages 0 to `count`; ACCOUNTS record keys."""
        self.topic(topic)
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "linger.ms": 50,
                             "queue.buffering.max.messages": count + 1})
        for number in range(count):
            account = f"a{number % ACCOUNTS}"
            payload = json.dumps({"id": number, "account": account, "note": "x" * 150})
            producer.produce(topic, payload, account)
        if producer.flush(120):
            raise RuntimeError("Kafka did not take all payments")

    def start(self, command, database, group, more):
        """A worker or relay with the settings `more`, on top of its servers. Returns its process."""
        config = {"kafka": {"bootstrap.servers": self.kafka.bootstrap, "group.id": group},
                  "postgres": {"url": self.url(database)}, "admin": {"listen": False}}
        for part, settings in more.items():
            config[part] = {**config[part], **settings} if part in config else settings
        name = config.get("worker", {}).get("name", group)
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(config))
        self.newest = Child([self.build / "bin/hapax", command, "-c", file],
                            self.folder / f"{name}.log")
        return self.newest

    def until(self, what, met, seconds=300):
        """Waits. Returns when it was met, in seconds of the monotonic clock."""
        def met_or_dead():
            if not self.newest.runs():
                raise RuntimeError(pathlib.Path(self.newest.log).read_text()[-2000:])
            return met()
        wait_until(what, met_or_dead, seconds)
        return time.monotonic()

    def route(self, handler, topic="payments", **more):
        return {"topic": topic, "handler": handler, "plugin": str(self.plugin),
                "key": {"json": "/id"}, **more}

    def end(self):
        for broker in self.kafka.brokers:
            broker.kill()
        self.server.kill()


class Ends:
    """How many records a topic has, as often as it is asked."""

    def __init__(self, ground, topic, partitions):
        self.reader = Consumer({"bootstrap.servers": ground.kafka.bootstrap, "group.id": "figures",
                                "log_level": 0})
        self.parts = [TopicPartition(topic, number) for number in range(partitions)]

    def count(self):
        return sum(self.reader.get_watermark_offsets(part, timeout=10)[1] for part in self.parts)


def ask(session, sql, *values):
    with session.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall() if cursor.description else []


def booked(session):
    return ask(session, "SELECT count(*) FROM booked")[0][0]


def pace(session):
    """Rows a second. Leaves out the first tenth, while the worker warms up."""
    return float(ask(session, """
        SELECT (count(*) - 1) / extract(epoch FROM max(at) - min(at))
        FROM (SELECT at FROM booked ORDER BY at OFFSET (SELECT count(*) / 10 FROM booked)) r""")[0][0])


def leave(child):
    """A worker that is told to end, and does."""
    child.process.terminate()
    if child.wait(30) is None:
        child.kill()
        raise RuntimeError(f"it did not end: {child.log}")


def processors():
    """(busy, all) processor-seconds of the machine since it started."""
    values = [int(v) for v in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    return (sum(values) - values[3] - values[4]) / tick, sum(values) / tick


def median(values):
    return sorted(values)[len(values) // 2]


def row(*cells):
    print(f"| {' | '.join(str(c) for c in cells)} |", flush=True)


def table(*names):
    print()
    row(*names)
    print("|" + "---|" * len(names), flush=True)
