"""When what happens: decided by the seed alone, done as far as what is busy allows."""

import random
import time

from faults import FAULTS

MEAN_PAUSE_S = 2.5


class Running:
    def __init__(self, name, steps, holds):
        self.name = name
        self.steps = steps
        self.holds = holds
        self.due = 0


class Schedule:
    def __init__(self, site, seconds, names, say):
        self.site = site
        self.say = say
        self.running = []
        self.done = {}
        chance = random.Random(f"{site.seed} schedule")
        self.planned = []  # (at, name, seed), the earliest last
        at = chance.expovariate(1 / MEAN_PAUSE_S) + 2
        while names and at < seconds:
            name = chance.choices(names, [FAULTS[n][2] for n in names])[0]
            self.planned.insert(0, (at, name, chance.random()))
            at += chance.expovariate(1 / MEAN_PAUSE_S)
        self.seconds = seconds
        self.began = time.monotonic()

    def now(self):
        return time.monotonic() - self.began

    def over(self):
        return self.now() >= self.seconds

    def turn(self):
        """Begins what is due and free, and goes on with what is under way."""
        while self.planned and self.planned[-1][0] <= self.now():
            _, name, seed = self.planned.pop()
            self.begin(name, random.Random(seed))
        for one in list(self.running):
            if one.due <= self.now():
                self.step(one)

    def held(self):
        return {thing for one in self.running for thing in one.holds}

    def workers_for(self, name):
        """Whom this fault may befall."""
        return self.site.fleet.all

    def begin(self, name, chance):
        function, needs, _ = FAULTS[name]
        arguments, holds = [], {needs}
        if needs == "worker":
            worker = chance.choice(self.workers_for(name))
            arguments, holds = [worker], {worker}
        elif needs == "all workers":
            holds = set(self.site.fleet.all)
        if holds & self.held():
            self.say(f"{name}: put aside, {needs} is busy")
            return
        self.say(f"{name} {arguments[0].name if arguments else ''}")
        self.done[name] = self.done.get(name, 0) + 1
        one = Running(name, function(self.site, chance, *arguments), holds)
        self.running.append(one)
        self.step(one)

    def step(self, one):
        try:
            one.due = self.now() + next(one.steps)
        except StopIteration:
            self.running.remove(one)

    def heal(self):
        """Lets all that is under way come to its end, at once."""
        self.planned = []
        for one in self.running:
            one.due = 0
        while self.running:
            self.turn()
            self.site.fleet.keep_alive()
            time.sleep(0.02)
