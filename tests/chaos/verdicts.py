"""Decides for each series of a soak whether it is flat.

Its growth is the slope of Theil and Sen (the median of the slopes between all pairs), times the
seconds judged: an outage, a spike or a sawtooth does not bend it. It is flat where it grows by
less than a share of its median, or less than an amount that says nothing.
"""

import statistics

BUCKETS = 240

# Grow with what was sent, and are there to be kept (attempts: those of dead letters); not judged.
KEPT = ("dead_letters", "attempts", "replays", "operator_log", "position_changes", "halts",
        "handler's")
# The end of a name -> (share, amount). The first that fits.
BOUNDS = (
    (" memory, MiB", 0.10, 8), (" descriptors", 0, 3), (" threads", 0, 2),
    ("connections", 0, 3), ("WAL kept, MiB", 0.15, 32), ("WAL, KiB/s", 0.25, 16),
    ("WAL a message, bytes", 0.25, 200), (" dead rows", 0.3, 2000),
    ("lag, messages", 0, 200), ("waiting for a retry", 0, 50),
    ("mean transaction, ms", 0.25, 5), (", MiB", 0.15, 0.125),
)


def bound_of(name):
    return next(((share, amount) for end, share, amount in BOUNDS if name.endswith(end)), None)


def judged(name, survivor):
    """The bound for this series, or None. Of the workers one lives all the time."""
    another = name[0] == "w" and name[1].isdigit() and not name.startswith(survivor + " ")
    return None if another or name.startswith(KEPT) else bound_of(name)


def telling(name, points):
    """Whether there is more of it than its bound lets grow: worth a picture."""
    bound = bound_of(name)
    return bound is None or max(value for _, value in points) > bound[1]


def thinned(points, most=BUCKETS):
    """At most so many, each the median of its neighbours."""
    size = -(-len(points) // most)
    groups = [points[at:at + size] for at in range(0, len(points), size)]
    return [(group[len(group) // 2][0], statistics.median(value for _, value in group))
            for group in groups]


def slope(points):
    points = thinned(points)
    slopes = [(w - v) / (u - t) for n, (t, v) in enumerate(points) for u, w in points[n + 1:]
              if u > t]
    return statistics.median(slopes) if slopes else 0.0


def verdict(points, warm, bound):
    """{median, growth, bound, flat} over the time after `warm` seconds."""
    points = [point for point in points if point[0] >= warm]
    if len(points) < 20:
        return {"flat": False, "why": f"only {len(points)} looks at it after the warm-up"}
    middle = statistics.median(value for _, value in points)
    growth = slope(points) * (points[-1][0] - points[0][0])
    most = max(bound[0] * middle, bound[1])
    return {"flat": growth <= most, "median": round(middle, 3), "growth": round(growth, 3),
            "bound": round(most, 3)}


def verdicts(series, warm, survivor):
    """name -> verdict, of those that are judged."""
    bounds = {name: judged(name, survivor) for name in series}
    return {name: verdict(series[name], warm, bound) for name, bound in bounds.items() if bound}


def told(name, found):
    if "why" in found:
        return f"{name}: {found['why']}"
    return (f"{name}: {found['median']:g}, grew by {found['growth']:g} of at most "
            f"{found['bound']:g}: {'flat' if found['flat'] else 'NOT FLAT'}")
