"""Clients of the gates: each retries with its key as payment SDKs do, and keeps every answer.

An answer counts only if all its bytes came. Each attempt has a name of its own, which the handler puts into
what it writes and answers.
"""

import dataclasses
import json
import queue
import random
import socket
import threading
import time

from gate_requests import Source

THREADS = 48
BURST = 24              # operations at once, so that requests wait for lanes and share transactions
MOST_TRIES = 7
MOST_LOOKS = 4          # at an accepted operation, while it is tried
LONGEST_PAUSE_S = 1.2
CALM_PAUSE_S = 0.1
MOST_WAITING = 200


class Broken(Exception):
    """The connection ended before the answer was whole, or nothing answered."""


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def problem(self):
        """The word of a refusal; "": it is none."""
        if self.headers.get("content-type") != "application/problem+json":
            return ""
        return json.loads(self.body)["type"].rsplit(":", 1)[1]

    @property
    def retries(self):
        """Whether docs/gate.md tells its clients to try again."""
        return self.status in (409, 503) or (self.status == 500 and "retry-after" in self.headers)

    @property
    def is_replayed(self):
        return self.headers.get("idempotent-replayed") == "true"


@dataclasses.dataclass
class Attempt:
    name: str
    gate: str
    began: float
    ended: float = 0
    answer: object = None  # None: none came
    why: str = ""          # none came

    def __str__(self):
        answer = self.why
        if self.answer:
            replayed = ", replayed" if self.answer.is_replayed else ""
            answer = f"{self.answer.status}{replayed} {self.answer.body[:240]!r}"
        return f"{self.name} at {self.gate} {self.began:.3f} to {self.ended:.3f}: {answer}"


class Connection:
    """HTTP/1.1 by hand: a library may take an answer that was cut for a whole one."""

    def __init__(self, port):
        self.port = port
        self.socket = None
        self.rest = b""

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket, self.rest = None, b""

    def ask(self, request, seconds):
        """Raises Broken."""
        try:
            if not self.socket:
                self.socket = socket.create_connection(("127.0.0.1", self.port), 2)
            deadline = time.monotonic() + seconds
            self.socket.settimeout(seconds)
            self.socket.sendall(request)
            answer = self.read(deadline)
        except (OSError, ValueError) as error:
            self.close()
            raise Broken(repr(error)) from None
        except Broken:
            self.close()
            raise
        if answer.headers.get("connection") == "close":
            self.close()
        return answer

    def more(self, deadline):
        self.socket.settimeout(max(0.001, deadline - time.monotonic()))
        data = self.socket.recv(65536)
        if not data:
            raise Broken(f"the connection ended after {len(self.rest)} bytes")
        self.rest += data

    def read(self, deadline):
        while b"\r\n\r\n" not in self.rest:
            self.more(deadline)
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        status = int(first.split()[1])
        length = 0 if status == 204 else int(headers["content-length"])
        while len(self.rest) < length:
            self.more(deadline)
        body, self.rest = self.rest[:length], self.rest[length:]
        return Answer(status, headers, body)


def request_of(method, path, token, headers=(), body=b""):
    lines = [f"{method} {path} HTTP/1.1", "Host: gate", f"Authorization: Bearer {token}", *headers]
    if method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


class Clients:
    """All of them. `ports`: name of a gate -> where clients reach it; `tokens`: tenant -> token."""

    def __init__(self, seed, accounts, rate, ports, tokens, journal):
        self.source = Source(seed, accounts)
        self.ports = ports
        self.tokens = tokens
        self.pause = 1 / rate
        self.journal = open(journal, "w", buffering=1)
        self.all = []
        self.waiting = queue.Queue()
        self.calm = self.ending = False
        self.errors = []
        self.deadline = 0
        self.threads = []

    def start(self):
        self.run_threads(self.try_them, [self.generate])

    def run_threads(self, work, others=()):
        self.threads = [threading.Thread(target=self.guarded, args=(one,), daemon=True)
                        for one in [*[work] * THREADS, *others]]
        for thread in self.threads:
            thread.start()

    def guarded(self, work):
        try:
            work()
        except BaseException as error:  # told at the end
            self.errors.append(f"a client itself failed: {error!r}")

    def is_busy(self):
        return any(thread.is_alive() for thread in self.threads)

    def stop(self):
        """No more operations; each client ends its attempt."""
        self.ending = True

    def generate(self):
        while not self.ending:
            if self.waiting.qsize() < MOST_WAITING:
                for _ in range(BURST):
                    self.add(self.source.next())
            time.sleep(BURST * self.pause)

    def add(self, clients):
        self.all += clients
        for client in clients:
            self.waiting.put(client)

    def finish(self, seconds):
        """In the calm: each client tries again until it has an answer."""
        self.all += self.source.rest()
        while not self.waiting.empty():
            self.waiting.get()
        for client in self.all:
            if not client.is_told_to_stop():
                self.waiting.put(client)
        self.calm, self.deadline = True, time.monotonic() + seconds
        self.run_threads(self.finish_them)

    def try_them(self):
        connections = self.connections()
        while not self.ending:
            try:
                client = self.waiting.get(timeout=0.1)
            except queue.Empty:
                continue
            self.pursue(client, connections)

    def finish_them(self):
        connections = self.connections()
        while time.monotonic() < self.deadline:
            try:
                client = self.waiting.get_nowait()
            except queue.Empty:
                return
            self.pursue(client, connections)

    def connections(self):
        return {name: Connection(port) for name, port in self.ports.items()}

    def pursue(self, client, connections):
        """Until it has an answer that ends its wish, or has tried often enough."""
        chance = random.Random(f"{client.seed} {self.calm}")
        favourite = chance.choice(list(connections)) if chance.random() < 0.5 else None
        for _ in range(50 if self.calm else MOST_TRIES):
            gate = favourite or chance.choice(list(connections))
            answer = self.attempt(client, gate, connections[gate])
            if answer and not answer.retries:
                if answer.status == 202:
                    self.look(client, answer.headers["location"], connections, chance)
                return
            fails = answer and answer.problem == "failed" and client.operation.deed == "throw"
            if self.over() or (self.calm and fails):
                return  # it fails always
            self.rest(chance, answer)

    def over(self):
        return time.monotonic() > self.deadline if self.calm else self.ending

    def rest(self, chance, answer=None):
        longest = CALM_PAUSE_S if self.calm else LONGEST_PAUSE_S
        asked = float(answer.headers.get("retry-after", 0)) if answer else 0
        time.sleep(min(longest, max(asked * chance.random(), chance.uniform(0, 0.4))))

    def look(self, client, location, connections, chance):
        """At what became of an accepted request."""
        pending = True
        tries = 0
        while pending and not self.over() and (self.calm or tries < MOST_LOOKS):
            tries += 1
            gate = chance.choice(list(connections))
            request = request_of("GET", location, self.tokens[client.operation.tenant])
            answer = self.send(client, client.looks, gate, connections[gate], request)
            pending = not answer or answer.status in (202, 503)
            if pending:
                self.rest(chance)

    def attempt(self, client, gate, connection):
        key, content_type, body = client.spelt()
        name = f"{client.name}.{len(client.attempts) + 1}"
        headers = [f"Idempotency-Key: {key}", f"Content-Type: {content_type}", f"X-Attempt: {name}"]
        request = request_of("POST", client.operation.path, self.tokens[client.operation.tenant],
                             headers, body)
        return self.send(client, client.attempts, gate, connection, request, name)

    def send(self, client, record, gate, connection, request, name="look"):
        attempt = Attempt(name, gate, time.monotonic())
        record.append(attempt)
        self.journal.write(f"sends {client.operation.name} {attempt.began:.3f} {name} {gate} {request!r}\n")
        try:
            attempt.answer = connection.ask(request, 10 if self.calm else client.patience_s)
        except Broken as error:
            attempt.why = str(error)
        attempt.ended = time.monotonic()
        self.journal.write(f"got {client.operation.name} {attempt}\n")
        return attempt.answer
