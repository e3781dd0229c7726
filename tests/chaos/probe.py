"""Looks while it happens: Kafka's offset <= checkpoint <= settled, at every moment.

The end may hide a hole that closed by itself; a kill in that moment would have made it a loss. A
thread of its own; what it finds wrong is in `broken`.
"""

import threading
import time

import psycopg2
from confluent_kafka import KafkaException

import evidence

EVERY_S = 0.7
# So long after a loss a worker may still commit to Kafka what was a checkpoint before it.
LATE_COMMIT_S = 10


class Probe(threading.Thread):
    def __init__(self, site):
        super().__init__(name="probe", daemon=True)
        self.site = site
        self.reader = evidence.Reader(site.kafka.bootstrap, site.topic, site.group)
        self.proven = {}     # partition -> messages below are settled
        self.last = {}       # partition -> checkpoint at the last look
        # Partitions whose Kafka offset may be above: the checkpoint that it followed was lost since,
        # or lowered by the decision `run`.
        self.excused = set()
        self.lost_at = 0
        self.losses = 0
        self.moves = 0
        self.looks = 0
        self.ending = False
        self.broken = []

    def run(self):
        while not self.ending:
            try:
                self.look()
            except (psycopg2.Error, KafkaException):
                pass  # a server is away
            except BaseException as error:
                self.broken.append(f"the probe itself failed: {error!r}")
                return
            time.sleep(EVERY_S)
        self.reader.close()

    def look(self):
        site = self.site
        losses, moves = site.postgres.losses, site.moves
        self.reader.extend()
        committed = self.reader.committed()
        if moves != self.moves:
            self.proven, self.last, self.moves = {}, {}, moves
            while site.lowered:
                self.excused.add(site.lowered.pop())
        if losses != self.losses:
            self.proven, self.last = {}, {}
            self.excused, self.lost_at = set(committed), time.monotonic()
            self.losses = losses
        connection = psycopg2.connect(site.postgres.server.url(), connect_timeout=3)
        try:
            connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
            with connection.cursor() as cursor:
                wrong = self.judge(cursor, committed)
        finally:
            connection.close()
        # A loss or an operator's move in between explains anything: the next look tells.
        if site.postgres.losses == losses and site.moves == moves:
            self.broken += wrong
            self.looks += 1
        else:
            self.proven, self.last = {}, {}

    def judge(self, cursor, committed):
        checkpoints = evidence.checkpoints(cursor, self.site.topic)
        wrong = []
        for partition, (checkpoint, highest) in checkpoints.items():
            offset = committed.get(partition, -1)
            if offset <= highest:
                if time.monotonic() > self.lost_at + LATE_COMMIT_S:
                    self.excused.discard(partition)
            elif partition not in self.excused:
                wrong.append(f"partition {partition}: Kafka's offset {offset} is above the highest "
                             f"checkpoint {highest}")
            if checkpoint < self.last.get(partition, 0):
                wrong.append(f"partition {partition}: the checkpoint went back from "
                             f"{self.last[partition]} to {checkpoint}, and nobody moved it")
            self.last[partition] = checkpoint
        if self.site.variant["compacted"]:
            return wrong  # what was read here may have gone before a worker could see it
        ends = {p: c for p, (c, _) in checkpoints.items()}
        if not self.reader.read_to(ends, 5):
            return wrong
        below = [message for p, end in ends.items()
                 for offset, message in self.reader.messages[p].items()
                 if self.proven.get(p, 0) <= offset < end]
        effects = evidence.effects(cursor, list({m.op for m in below}))
        letters = evidence.letters(cursor, self.site.topic)
        settled = set(self.site.world.closed) | (
            evidence.keys_of(letters) if self.site.world.letters_settle_all else set())
        for message in below:
            found = [e for e in effects.get(message.op, ()) if self.site.world.is_of(e, message)]
            if not found and message.at not in letters and message.op not in settled and \
                    not self.site.skipped(message.at):
                wrong.append(f"{message.at} of operation {message.op} ({message.deed}) is below "
                             f"the checkpoint {ends[message.partition]} and not settled: "
                             "no effect, no dead letter")
        self.proven.update(ends)
        return wrong
