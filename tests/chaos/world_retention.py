"""Keys that expire within the run, while retries hold checkpoints back and duplicates come again.

An operation that is sent again within retention of its completion must not take effect twice,
whatever waits, and whatever restarts. Later it may: its key is gone.
"""

from worlds import World, world

# The shortest that hapax takes. A key lives up to ten seconds longer, until the next round.
RETENTION = "60s"


@world
class Retention(World):
    name = "retention"
    variant = {"retention": RETENTION, "compacted": False, "lose_tail": False, "ordering": "key"}
    deeds = {"book": 940, "slow": 20, "flaky": 20, "reject": 10, "pin": 8}
    # A key that is gone, and a message that comes again below the highest checkpoint: I8.
    halts = {"unknown_below_highest"}
    rate = 80
    shortest_s = 200
    topic = {"message.timestamp.type": "LogAppendTime"}  # retention counts to when Kafka has it
    # What takes facts or messages back further than keys live is told by halts, not by this world;
    # what holds a message up for longer than retention lets it come late, which may run again.
    except_faults = ("operator-rewinds", "operator-skips", "operator-replays",
                     "point-in-time-restore", "replica-promoted", "message-that-kills",
                     "broker-frozen-long")

    def configure(self, config):
        # A pin waits for as long as it takes; it is no failure.
        config["routes"][0]["retry"] |= {"max_attempts": 1000, "first": "100ms", "max": "500ms"}

    def began(self):
        for sender in (self.site.plain, self.site.transactional):
            sender.source.gaps = (0, 1, 5, 50, 200)
            sender.source.pinned_s = round(2.5 * self.site.retention_s) + 5
