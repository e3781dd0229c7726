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
    def __init__(self, site, seconds, names, rare, say):
        self.site = site
        self.say = say
        self.running = []
        self.waiting = []  # (name, chance, holds) of those that want many things
        self.done = {}
        chance = random.Random(f"{site.seed} schedule")
        self.planned = []  # (at, name, seed), the earliest last
        at = chance.expovariate(1 / MEAN_PAUSE_S) + 2
        names = [name for name in names if name not in site.world.except_faults and
                 FAULTS[name].world in ("", site.world.name)]
        while names and at < seconds:
            name = chance.choices(names, [FAULTS[n].weight for n in names])[0]
            self.planned.append((at, name, chance.random()))
            at += chance.expovariate(1 / MEAN_PAUSE_S)
        for name in rare:
            self.plan_rare(name, seconds)
        self.planned.sort(reverse=True)
        self.seconds = seconds
        self.began = time.monotonic()

    def plan_rare(self, name, seconds):
        """With chance of its own: a new rare fault leaves the others where they were."""
        fault = FAULTS[name]
        if fault.variant and not self.site.variant[fault.variant]:
            return
        if name in self.site.world.except_faults or (
                fault.world and fault.world != self.site.world.name):
            return
        chance = random.Random(f"{self.site.seed} {name}")
        at = 2 + chance.expovariate(fault.rare / 60)
        while at < seconds - fault.lasts:
            self.planned.append((at, name, chance.random()))
            at += fault.lasts + chance.expovariate(fault.rare / 60)

    def now(self):
        return time.monotonic() - self.began

    def over(self):
        return self.now() >= self.seconds

    def turn(self):
        """Begins what is due and free, and goes on with what is under way."""
        while self.planned and self.planned[-1][0] <= self.now():
            _, name, seed = self.planned.pop()
            self.begin(name, random.Random(seed))
        for one in list(self.waiting):
            if not one[2] & {thing for other in self.running for thing in other.holds}:
                self.waiting.remove(one)
                self.start(*one)
        for one in list(self.running):
            if one.due <= self.now():
                self.step(one)

    def held(self):
        return {thing for holds in [*(one.holds for one in self.running), *(one[2] for one in self.waiting)]
                for thing in holds}

    def workers_for(self, name):
        """Whom this fault may befall."""
        return self.site.fleet.all

    def begin(self, name, chance):
        needs = FAULTS[name].needs
        arguments, holds = [], set()
        for need in needs.split("+"):
            if need == "worker":
                arguments = [chance.choice(self.workers_for(name))]
                holds |= set(arguments)
            elif need == "all workers":
                holds |= set(self.site.fleet.all)
            else:
                holds.add(need)
        if "+" in needs:
            self.waiting.append((name, chance, holds))
        elif holds & self.held():
            self.say(f"{name}: put aside, {needs} is busy")
        else:
            self.start(name, chance, holds, arguments)

    def start(self, name, chance, holds, arguments=()):
        self.say(f"{name} {arguments[0].name if arguments else ''}")
        self.done[name] = self.done.get(name, 0) + 1
        one = Running(name, FAULTS[name].act(self.site, chance, *arguments), holds)
        self.running.append(one)
        self.step(one)

    def step(self, one):
        try:
            one.due = self.now() + next(one.steps)
        except StopIteration:
            self.running.remove(one)

    def heal(self):
        """Lets all that is under way come to its end, at once."""
        self.planned, self.waiting = [], []
        for one in self.running:
            one.due = 0
        while self.running:
            self.turn()
            self.site.fleet.keep_alive()
            time.sleep(0.02)
