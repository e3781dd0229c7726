"""What a soak looks at every few seconds: the workers' processes, PostgreSQL, the lag.

A thread of its own; it reaches the servers directly, not through the proxy. A look at a server that
is away is left out.
"""

import collections
import pathlib
import threading
import time
import urllib.request

import psycopg2
from confluent_kafka import Consumer, KafkaException, TopicPartition

EVERY_S = 3
# Checkpoints come once a second and WAL in bursts: rates are over so long.
RATE_OVER_S = 30
MIB = 1 << 20

SERVER = """
SELECT (SELECT count(*) FROM pg_stat_activity WHERE usename = 'hapax_worker'),
       pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0'), (SELECT sum(size) FROM pg_ls_waldir()),
       (SELECT sum(next_offset) FROM hapax.checkpoints),
       (SELECT count(*) FROM hapax.attempts) - (SELECT count(*) FROM hapax.dead_letters
                                                WHERE reason = 'attempts_exhausted')
"""
TABLES = """
SELECT schemaname = 'hapax', relname, pg_table_size(relid), pg_indexes_size(relid), n_dead_tup
FROM pg_stat_user_tables WHERE relname IN ('ledger', 'balances')
  OR schemaname = 'hapax' AND relname NOT IN ('store', 'incarnation', 'schema_migrations')
"""


def process_of(pid):
    """(resident MiB, file descriptors, threads)."""
    folder = pathlib.Path("/proc") / str(pid)
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return (int(status["VmRSS"].split()[0]) / 1024, len(list((folder / "fd").iterdir())),
            int(status["Threads"]))


def transactions_of(port):
    """(how many there were, their seconds), as a worker counts them."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=1) as answer:
        lines = answer.read().decode().splitlines()
    return tuple(sum(float(line.rsplit(" ", 1)[1]) for line in lines
                     if line.startswith(f"hapax_transaction_seconds_{what}"))
                 for what in ("count", "sum"))


class Sampler(threading.Thread):
    def __init__(self, site):
        super().__init__(name="sampler", daemon=True)
        self.site = site
        self.series = {}  # name -> [(second, value)]
        self.began = time.monotonic()
        self.ending = False
        self.error = None
        self.history = collections.deque()  # (second, WAL bytes, settled messages)
        self.transactions = None
        self.consumer = Consumer({"bootstrap.servers": site.kafka.bootstrap, "group.id": "soak",
                                  "socket.timeout.ms": 3000, "log_level": 0})

    def now(self):
        return time.monotonic() - self.began

    def add(self, name, value):
        self.series.setdefault(name, []).append((round(self.now(), 1), round(float(value), 4)))

    def last(self, name, otherwise=0):
        return self.series[name][-1][1] if name in self.series else otherwise

    def run(self):
        try:
            while not self.ending:
                self.look_at_workers()
                self.look_at_postgres()
                time.sleep(EVERY_S)
        except BaseException as error:  # told by whoever joins
            self.error = error

    def look_at_workers(self):
        for worker in self.site.fleet.all:
            try:
                memory, descriptors, threads = process_of(worker.child.pid)
            except (OSError, KeyError):  # it ends, or has ended
                continue
            self.add(f"{worker.name} memory, MiB", memory)
            self.add(f"{worker.name} descriptors", descriptors)
            self.add(f"{worker.name} threads", threads)
        try:
            count, seconds = transactions_of(self.site.fleet.all[0].port)
        except (OSError, ValueError):
            return
        before, self.transactions = self.transactions, (count, seconds)
        if before and count > before[0]:
            self.add("mean transaction, ms", 1000 * (seconds - before[1]) / (count - before[0]))

    def look_at_postgres(self):
        try:
            connection = psycopg2.connect(self.site.postgres.server.url(), connect_timeout=3,
                                          options="-c statement_timeout=3000")
            try:
                with connection.cursor() as cursor:
                    self.ask(cursor)
            finally:
                connection.close()
        except (psycopg2.Error, KafkaException):
            pass

    def ask(self, cursor):
        cursor.execute(SERVER)
        connections, wal, kept, settled, waiting = cursor.fetchone()
        self.add("waiting for a retry", waiting)
        self.add("connections", connections)
        self.add("WAL kept, MiB", kept / MIB)
        self.rates(float(wal), int(settled or 0))
        cursor.execute(TABLES)
        for ours, name, size, indexes, dead in cursor.fetchall():
            name = name if ours else f"handler's {name}"
            self.add(f"{name}, MiB", size / MIB)
            if indexes:
                self.add(f"{name} indexes, MiB", indexes / MIB)
            self.add(f"{name} dead rows", dead)
        self.add("lag, messages", self.end() - int(settled or 0))

    def end(self):
        return sum(self.consumer.get_watermark_offsets(
            TopicPartition(self.site.topic, p), timeout=2)[1] for p in range(self.site.partitions))

    def rates(self, wal, settled):
        self.history.append((self.now(), wal, settled))
        while self.history[-1][0] - self.history[0][0] > RATE_OVER_S:
            self.history.popleft()
        seconds, bytes_, messages = (new - old for new, old in
                                     zip(self.history[-1], self.history[0]))
        if seconds > RATE_OVER_S / 2:
            self.add("settled, messages/s", messages / seconds)
            self.add("WAL, KiB/s", bytes_ / 1024 / seconds)
            if messages > 0:
                self.add("WAL a message, bytes", bytes_ / messages)
