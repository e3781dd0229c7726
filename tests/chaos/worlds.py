"""The worlds a run can take place in. Each has its own set-up, messages, faults and right answers.

`usual` is the one that all runs had first: one group, one topic, few partitions, polite handlers.
A world says what is different; the site, the schedule and the checker ask it.
"""

import random

WORLDS = {}  # name -> class
# A partition or route that PostgreSQL was taken back under halts for this; the site resumes it.
AFTER_A_RESTORE = {"checkpoint_missing"}


def world(kind):
    WORLDS[kind.name] = kind
    return kind


@world
class World:
    name = "usual"
    handler = "ledger"  # and the plugin that has it
    variant = {}       # over what the seed decided
    settings = {}      # of PostgreSQL, beside those of its ground
    topic = {}         # settings of the topic
    ledger = ""        # SQL, beside the ledger's
    deeds = None       # deed -> weight; None: the usual ones
    scripts = {}       # deed -> steps that a hostile handler takes
    drifts = True      # whether keys are used for a second payload
    fails = {}         # more deeds that never take effect -> reasons of their dead letters
    either = {}        # more deeds that take effect, or end in a dead letter with such a reason
    halts = None       # reasons that may halt something; None: all, if they are ended at the end
    partitions = 6
    accounts = 48
    rate = None        # operations a second; None: as the command line says
    except_faults = ()  # usual ones that do not fit
    only_probe = True  # whether the probe can look while it runs
    produced = True    # whether producers send messages
    audited = True     # whether `hapax audit` must come to the checker's counts
    one_log = True     # whether all is in one incarnation of one topic, read by one group
    shrinks = False    # whether Kafka deletes messages, which are `gone` then
    shortest_s = 0     # in less time nothing of what it is for can happen
    letters_settle_all = False  # what comes again after a dead letter of its key may be a duplicate
    workers = 3
    sasl = False       # whether workers reach Kafka as a user with rights of its own

    def __init__(self, site):
        self.site = site
        self.gone = []   # messages that Kafka does not have any more
        self.closed = {}  # operations that an operator closed -> the message that had the key
        self.again = {}  # operation -> effects that it may have beside the one
        self.chance = random.Random(f"{site.seed} {self.name}")

    def proxied(self):
        """name -> port of more servers that the proxy stands in front of."""
        return {}

    def configure(self, config):
        """Changes a worker's configuration."""

    def began(self):
        """All runs; nothing is sent yet."""

    def turn(self):
        """Between two turns of the schedule."""

    def healed(self):
        """No fault is under way any more; what is left is drained."""

    def ended(self):
        """All is drained. Returns complaints."""
        return []

    def is_of(self, effect, message):
        """Whether the effect, of the same operation, settles the message."""
        return effect.payload == message.payload

    def complaints(self, checker, cursor):
        """What else is wrong in PostgreSQL."""
        return []


def draw(seed, seconds):
    """The world that a seed draws, and the seconds that its run takes: longer, if the world needs it."""
    longer = [name for name in sorted(WORLDS) if WORLDS[name].shortest_s > seconds]
    if random.Random(f"{seed} longer").randrange(len(WORLDS)) < len(longer):
        name = random.Random(f"{seed} world").choice(longer)
        return name, WORLDS[name].shortest_s
    return random.Random(f"{seed} world").choice(sorted(set(WORLDS) - set(longer))), seconds
