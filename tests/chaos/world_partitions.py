"""Hundreds of partitions, added while workers run, on a machine that is busy."""

import sys

from faults import fault, until
from processes import Child
from worlds import World, world

LOOPS = 6
BUSY = [sys.executable, "-c", "while True: pass"]


@world
class Partitions(World):
    name = "partitions"
    variant = {"compacted": False, "small_disk": False, "pooler": False}
    rate = 100
    except_faults = ("partitions-added", "message-that-kills", "broker-frozen-long",
                     "point-in-time-restore", "replica-promoted")

    def __init__(self, site):
        super().__init__(site)
        count = site.options.variant.get("partitions") or self.chance.choice([200, 400, 600])
        self.partitions = self.accounts = count
        self.variant = {**self.variant, "partitions": count}

    def configure(self, config):
        # Each leader's assignment of so many takes its time on a busy machine.
        config["kafka"]["session.timeout.ms"] = 6000


@fault("machine", 4, rare=8, lasts=6, world="partitions")
def machine_busy(site, chance):
    """Loops beside it that leave no processor idle."""
    loops = [Child(BUSY, site.folder / "loops.log") for _ in range(LOOPS)]
    yield chance.uniform(3, 6)
    for loop in loops:
        loop.kill()


@fault("partitions", 4, rare=5, lasts=4, world="partitions")
def many_partitions_added(site, chance):
    more = chance.choice([1, 20, 60])
    yield from until(lambda: site.add_partition(more))
    yield 2


@fault("all workers", 4, rare=6, lasts=5, world="partitions")
def all_workers_restarted_while_busy(site, chance):
    """All start at once, with all partitions, and one joins while they do."""
    loops = [Child(BUSY, site.folder / "loops.log") for _ in range(LOOPS)]
    for worker in site.fleet.all:
        worker.kill()
        worker.wanted = False
    yield from until(lambda: not any(worker.runs() for worker in site.fleet.all))
    late = chance.choice(site.fleet.all)
    for worker in site.fleet.all:
        if worker is not late:
            worker.start()
    yield chance.uniform(0.5, 4)
    late.start()
    yield chance.uniform(1, 3)
    for loop in loops:
        loop.kill()
