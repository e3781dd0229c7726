"""How a run ends: all is healed and drained, the workers leave, and the checker has its say."""

import collections

from checker import Checker
from ground import LEAVE_S


def end(site, schedule, probe, say, before_check=lambda: None):
    """Returns (complaints, facts)."""
    say("healing and draining")
    schedule.heal()
    for worker in site.fleet.all:
        worker.start()
    left = site.drain()
    complaints = site.world.ended()
    for worker in site.fleet.all if left else []:
        worker.report()
    probe.ending = True
    if probe.ident is not None:
        probe.join(60)
    complaints += probe.broken + site.fleet.stop(LEAVE_S)
    before_check()
    checker = getattr(site.world, "checker", Checker)(site)
    complaints += checker.check()
    if left:
        complaints.append(f"not drained: {left}")
    facts = {**checker.summary(), "faults": schedule.done, "looks": probe.looks,
             "decisions": sum(len(operator.decided) for operator in site.operators),
             "halts_ended": dict(collections.Counter(f"{halt.reason}: {decision}" for operator in site.operators
                                                     for halt, decision, code in operator.decided if code == 0)),
             "worker_deaths": sum(worker.deaths for worker in site.fleet.all)}
    return complaints, facts
