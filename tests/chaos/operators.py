"""An operator at work: ends the open halts that his world knows, by decisions that are kept for the checker."""

import dataclasses
import time

import psycopg2

EVERY_S = 0.5
OPEN = ("SELECT id, topic, partition, whole_route, kafka_offset, reason, detail, group_id "
        "FROM hapax.halts WHERE ended_at IS NULL ORDER BY id")


@dataclasses.dataclass(frozen=True)
class Halt:
    id: int
    topic: str
    partition: int
    whole_route: bool
    offset: int
    reason: str
    detail: str
    group: str

    @property
    def place(self):
        name = self.topic if self.whole_route else f"{self.topic}/{self.partition}"
        return name if self.offset is None else f"{self.topic}/{self.partition}/{self.offset}"


def fitting(decisions, halt, healed):
    """Of the decisions by reason, those that fit this halt. Once all is healed, each brings it to an end."""
    fits = decisions.get(halt.reason, ())
    if healed:
        fits = [decision for decision in fits if decision != "retry"] or fits
    if halt.offset is None:
        fits = [decision for decision in fits if decision not in ("run", "skip")]
    return fits


class Operator:
    def __init__(self, site, decide, patience=(0.2, 2.0)):
        """`decide(halt)` returns a decision, or None to leave the halt as it is. It is asked some
        seconds after a halt was seen, within `patience`."""
        self.site = site
        self.decide = decide
        self.patience = patience
        self.due = {}       # halt -> when
        self.decided = []   # (Halt, decision, exit code)
        self.next = 0

    def turn(self):
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + EVERY_S
        try:
            halts = [Halt(*row) for row in self.site.postgres.server.ask(OPEN)]
        except psycopg2.Error:
            return
        for halt in halts:
            wait = self.site.world.chance.uniform(*self.patience)
            if time.monotonic() >= self.due.setdefault(halt.id, time.monotonic() + wait):
                self.end(halt)

    def end(self, halt):
        decision = self.decide(halt)
        if decision is None:
            return
        lowered = {halt.partition} if decision == "run" else set()
        self.site.lowered |= lowered
        self.site.moves += 1
        code = self.site.command("resume", halt.place, "--decision", decision, group=halt.group)
        self.site.lowered |= lowered
        self.site.moves += 1
        self.decided.append((halt, decision, code))
        # Whether one without an answer was done is not known: both is allowed then.
        self.site.say(f"  {halt.place} was halted, {halt.reason}: {decision}, exit code {code}")

    def skipped(self, at):
        """Whether he may have left this message out."""
        return any(decision == "skip" and (halt.partition, halt.offset) == at
                   for halt, decision, _ in self.decided)
