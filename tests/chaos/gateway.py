"""A payment gateway that counts what it really charges, and is as unreliable as the network to it.

A process of its own that is never killed. Arguments: PORT SEED RECORD KEEPS_S. What it does with a
call is decided by seed, key and the number of that key's calls. Each line of RECORD is one event,
as JSON, written at once. It keeps idempotency keys for KEEPS_S seconds; 0: not at all.

  POST /charges         charges; 402 for an operation that is declined
  GET /charges/<key>    200 with the charge; 404: none, and no call is under way; 409: cannot tell yet

Orders, one on each line of standard input:
  refuse     new connections are refused, until `accept`
  cut        all open connections end; calls that have arrived go on
  hold       calls that come wait before they are looked at, until `go`
  free PID   those of this process do not wait
"""

import asyncio
import json
import random
import subprocess
import sys
import time

from processes import Child, free_port

SLOW_S = 0.03
# Of what may happen to a call: how many in 1,000.
MISHAPS = {"cut before": 30, "cut after": 30, "500 after": 30, "503 before": 10, "429 before": 5}
LATE, LATE_S = 0.03, (0.3, 1.5)
TOO_LATE, TOO_LATE_S = 0.004, 8  # longer than workers wait


class Cut(Exception):
    pass


class Gateway:
    def __init__(self, seed, record, keeps_s):
        self.seed = seed
        self.record = open(record, "a", buffering=1)
        self.keeps_s = keeps_s
        self.calls = {}     # key -> how many came
        self.under_way = {}  # key -> how many
        self.charges = {}   # key -> (when, name) of the last one
        self.count = 0
        self.writers = set()
        self.free = set()   # process ids
        self.held = False
        self.changed = asyncio.Condition()

    def note(self, what, key, **more):
        self.record.write(json.dumps({"at": time.monotonic(), "what": what, "key": key, **more}) + "\n")

    async def accept(self, reader, writer):
        self.writers.add(writer)
        try:
            status, body = await self.answer(reader)
            writer.write(f"HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n"
                         f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
            writer.close()
        except Cut:  # in the middle of the answer
            writer.write(b"HTTP/1.1 200 x\r\nContent-Length: 100\r\n\r\n{")
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()
        finally:
            self.writers.discard(writer)

    async def answer(self, reader):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        verb, path, _ = head[0].split()
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        if verb == "GET":
            return self.tell(path.rsplit("/", 1)[1])
        order = json.loads(await reader.readexactly(int(headers["Content-Length"])))
        key, token = headers["Idempotency-Key"], int(headers["Fencing-Token"])
        pid = int(headers["Worker"])
        self.note("call", key, op=order["op"], token=token, pid=pid)
        self.calls[key] = self.calls.get(key, 0) + 1
        self.under_way[key] = self.under_way.get(key, 0) + 1
        # It goes on if the caller is gone.
        work = asyncio.ensure_future(self.call(order, key, token, pid, self.calls[key]))
        return await asyncio.shield(work)

    async def call(self, order, key, token, pid, number):
        try:
            async with self.changed:
                await self.changed.wait_for(lambda: not self.held or pid in self.free)
            return await self.charge(order, key, token, random.Random(f"{self.seed} {key} {number}"))
        finally:
            self.under_way[key] -= 1

    async def charge(self, order, key, token, chance):
        mishap = chance.choices([*MISHAPS, ""], [*MISHAPS.values(), 1000 - sum(MISHAPS.values())])[0]
        before = chance.expovariate(1 / SLOW_S)
        after = chance.expovariate(1 / SLOW_S)
        if chance.random() < LATE:
            before += chance.uniform(*LATE_S)
        if chance.random() < TOO_LATE:
            if chance.random() < 0.5:
                before += TOO_LATE_S
            else:
                after += TOO_LATE_S
        await asyncio.sleep(before)
        if mishap.endswith("before"):
            if mishap == "cut before":
                raise Cut
            return int(mishap[:3]), b"{}"
        if order["do"] == "decline":
            self.note("declined", key, op=order["op"], token=token)
            return 402, b"{}"
        when, name = self.charges.get(key, (0, ""))
        if not name or time.monotonic() > when + self.keeps_s:
            self.count += 1
            name = f"c{self.count}"
            self.charges[key] = time.monotonic(), name
            self.note("charge", key, op=order["op"], token=token, charge=name)
        await asyncio.sleep(after)
        if mishap == "cut after":
            raise Cut
        if mishap == "500 after":
            return 500, b"{}"
        return 200, json.dumps({"charge": name}).encode()

    def tell(self, key):
        if key in self.charges:
            status, body = 200, json.dumps({"charge": self.charges[key][1]}).encode()
        else:
            status, body = (409 if self.under_way.get(key) else 404), b"{}"
        self.note("asked", key, status=status)
        return status, body

    async def obey(self, what, *numbers):
        async with self.changed:
            if what == "cut":
                for writer in self.writers:
                    writer.transport.abort()
            elif what == "hold":
                self.held = True
            elif what == "free":
                self.free.add(int(numbers[0]))
            elif what == "go":
                self.held = False
                self.free.clear()
            self.changed.notify_all()


async def listen(gateway, port):
    for last in (False,) * 100 + (True,):  # a neighbour's connection may have the port for a moment
        try:
            return await asyncio.start_server(gateway.accept, "127.0.0.1", port)
        except OSError:
            if last:
                raise
            await asyncio.sleep(0.1)


async def serve(port, seed, record, keeps_s):
    gateway = Gateway(seed, record, float(keeps_s))
    server = await listen(gateway, port)
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while line := await orders.readline():
        what, *numbers = line.decode().split()
        if what == "refuse" and server:
            server.close()
            server = None
        elif what == "accept" and not server:
            server = await listen(gateway, port)
        else:
            await gateway.obey(what, *numbers)


class Double:
    """The same, from outside."""

    def __init__(self, folder, seed, keeps_s):
        self.port = free_port()
        self.record = folder / "gateway.record"
        self.record.touch()
        self.child = Child([sys.executable, __file__, self.port, seed, self.record, keeps_s],
                           folder / "gateway.log", stdin=subprocess.PIPE)

    def order(self, what, number=None):
        line = what if number is None else f"{what} {number}"
        self.child.process.stdin.write(line.encode() + b"\n")
        self.child.process.stdin.flush()

    def events(self):
        return [json.loads(line) for line in self.record.read_text().splitlines(True)
                if line.endswith("\n")]


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), *sys.argv[2:]))
