"""A TCP proxy between the workers and their servers that cuts, slows, stalls and redirects.

A process of its own. Arguments: NAME=DESCRIPTOR:TARGET_PORT, of a socket that listens. Each line of standard input is an
order, "NAME WHAT [NUMBER]":
  pass            as if it were not there
  cut N           each open connection ends after so many more bytes, wherever that is: below N
  frail N         so does each new connection; 0: no more
  slow MS         each chunk takes so long
  stall           nothing passes
  drop            all open connections end at once
  refuse          new connections end at once
  target PORT     where new connections go
"""

import asyncio
import random
import socket
import subprocess
import sys

from processes import Child


class Link:
    """One proxied connection."""

    def __init__(self, gate, writers):
        self.gate = gate
        self.writers = writers
        self.budget = None

    def end(self):
        for writer in self.writers:
            writer.transport.abort()

    async def pump(self, reader, writer):
        try:
            while data := await reader.read(65536):
                await self.gate.open.wait()
                if self.gate.slow:
                    await asyncio.sleep(self.gate.slow)
                if self.budget is not None:
                    data = data[:self.budget]
                    self.budget -= len(data)
                writer.write(data)
                await writer.drain()
                if self.budget == 0:
                    break
        except (ConnectionError, OSError):
            pass
        self.end()


class Gate:
    """One listening port."""

    def __init__(self, target, chance):
        self.target = target
        self.chance = chance
        self.links = set()
        self.open = asyncio.Event()
        self.open.set()
        self.slow = 0
        self.frail = 0
        self.refusing = False

    async def accept(self, reader, writer):
        try:
            if self.refusing:
                raise ConnectionError
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        link = Link(self, [writer, far_writer])
        if self.frail:
            link.budget = self.chance.randrange(1, self.frail)
        self.links.add(link)
        await asyncio.gather(link.pump(reader, far_writer), link.pump(far_reader, writer))
        self.links.discard(link)

    def obey(self, what, number=0):
        if what == "pass":
            self.slow, self.frail, self.refusing = 0, 0, False
            self.open.set()
        elif what == "cut":
            for link in self.links:
                link.budget = self.chance.randrange(1, number)
        elif what == "frail":
            self.frail = number
        elif what == "slow":
            self.slow = number / 1000
        elif what == "stall":
            self.open.clear()
        elif what == "refuse":
            self.refusing = True
        elif what == "target":
            self.target = number
        if what in ("drop", "refuse"):
            for link in list(self.links):
                link.end()


async def serve(arguments):
    gates = {}
    for argument in arguments:
        name, ports = argument.split("=")
        descriptor, target = map(int, ports.split(":"))
        gates[name] = Gate(target, random.Random(name))
        await asyncio.start_server(gates[name].accept, sock=socket.socket(fileno=descriptor))
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while line := await orders.readline():
        name, what, *number = line.decode().split()
        gates[name].obey(what, *map(int, number))


class Proxy:
    """The same, from outside. It holds its ports from the beginning: a port that is only known to be
    free is soon some connection's."""

    def __init__(self, log, names):
        self.sockets = {name: socket.create_server(("127.0.0.1", 0)) for name in names}
        self.ports = {name: one.getsockname()[1] for name, one in self.sockets.items()}
        self.log = log
        self.child = None

    def start(self, targets):
        self.child = Child([sys.executable, __file__, *(f"{name}={self.sockets[name].fileno()}:{target}"
                                                        for name, target in targets.items())],
                           self.log, stdin=subprocess.PIPE,
                           inherited=[self.sockets[name].fileno() for name in targets])
        for one in self.sockets.values():
            one.close()

    def order(self, name, what, number=None):
        line = f"{name} {what}" + ("" if number is None else f" {number}")
        self.child.process.stdin.write(line.encode() + b"\n")
        self.child.process.stdin.flush()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))
