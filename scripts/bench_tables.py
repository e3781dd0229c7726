#!/usr/bin/env python3
"""Makes the tables of docs/performance.md from what `hapax bench --json` printed.

usage: bench_tables.py RUN.json…       prints the tables of these runs
       bench_tables.py FOLDER PAGE     writes them into a page

FOLDER holds a NAME.json for each run of scripts/bench.sh. In PAGE the lines between `<!-- bench: TABLE -->`
and `<!-- end -->` are replaced. If a table's runs are not there, it stays as it is.
"""

import json
import pathlib
import re
import sys


def number(value):
    return f"{value:,.0f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def mode_name(figures):
    return figures["mode"] + (f" of {figures['batch']}" if figures["batch"] > 1 else "")


def spread(values):
    """The lowest and the highest round; nothing if there was one."""
    return f" ({number(min(values))} to {number(max(values))})" if len(values) > 1 else ""


def throughput_row(figures):
    ours = [each["per_second"] for each in figures["rounds"]]
    bare = [each["bare_per_second"] for each in figures["rounds"]]
    shares = [100 * a / b for a, b in zip(ours, bare)]
    return [f"{100 * figures['share']:.0f} %{spread(shares)}", number(figures["per_second"]) + spread(ours),
            number(figures["bare_per_second"]) + spread(bare)]


THROUGHPUT = ["of the bare loop", "hapax, messages/s", "bare loop, messages/s"]


def throughput(runs):
    return table(["mode"] + THROUGHPUT, [[mode_name(figures)] + throughput_row(figures)
                                         for figures in runs["base"]["throughput"]])


def latency(runs):
    rows = [[mode_name(figures), number(figures["rate"])] +
            [f"{figures[name]:.1f} ms" for name in ("p50_ms", "p99_ms", "p99_9_ms")]
            for figures in runs["base"]["latency"] if "p50_ms" in figures]
    return table(["latency", "load, messages/s", "p50", "p99", "p99.9"], rows) if rows else None


def further(runs):
    """PostgreSQL a millisecond away, and commits that do not wait for the disk."""
    names = {"base": "", "durability": "durability `checkpoint`", "delay": "1 ms away, 16 lanes",
             "delay-durability": "1 ms away, 16 lanes, durability `checkpoint`"}
    return table(["", "mode"] + THROUGHPUT,
                 [[text or "here", mode_name(figures)] + throughput_row(figures)
                  for name, text in names.items() if name in runs
                  for figures in runs[name]["throughput"] if figures["mode"] != "duplicates"])


def sweep(prefix, head, option=None):
    """A row for each run PREFIX-…, by what was asked for; with memory."""
    def rows(runs):
        found = [run for name, run in runs.items() if re.fullmatch(prefix + r"-\d+", name)]
        key = option or prefix
        found.sort(key=lambda run: run["options"][key])
        result = []
        for run in found:
            by_mode = {figures["mode"]: figures for figures in run["throughput"]}
            cells = [number(run["options"][key])]
            for mode in ("message", "batch"):
                figures = by_mode[mode]
                cells += [number(figures["per_second"]), f"{100 * figures['share']:.0f} %",
                          f"{figures['memory_mib']:.0f} MiB"]
            result.append(cells)
        return table([head, "message, /s", "of the bare loop", "memory",
                      "batch, /s", "of the bare loop", "memory"], result) if result else None
    return rows


TABLES = {
    "throughput": (throughput, "base"),
    "latency": (latency, "base"),
    "further": (further, "delay"),
    "lanes": (sweep("lanes", "lanes"), None),
    "partitions": (sweep("partitions", "partitions"), None),
    "payload": (sweep("payload", "bytes of payload", "payload_bytes"), None),
    "backlog": (sweep("backlog", "messages waiting", "messages"), None),
    "keys": (sweep("keys", "keys in the table"), None),
}


def tables(runs):
    """name -> lines, of all tables whose runs are there."""
    made = {name: make(runs) for name, (make, needs) in TABLES.items() if needs is None or needs in runs}
    return {name: lines for name, lines in made.items() if lines}


def written(page, runs):
    made = tables(runs)

    def replace(match):
        name = match.group(1)
        if name not in TABLES:
            sys.exit(f"there is no table {name}; there are: {', '.join(TABLES)}")
        if name not in made:
            return match.group(0)
        return f"<!-- bench: {name} -->\n\n" + "\n".join(made[name]) + "\n\n<!-- end -->"
    return re.sub(r"<!-- bench: (\S+) -->\n.*?<!-- end -->", replace, page, flags=re.DOTALL)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    if folder.is_dir() and len(sys.argv) != 3:
        sys.exit(__doc__)
    files = sorted(folder.glob("*.json")) if folder.is_dir() else [pathlib.Path(name) for name in sys.argv[1:]]
    runs = {path.stem: json.loads(path.read_text()) for path in files}
    wrong = [name for name, run in runs.items() if not run["exact"]]
    if wrong:
        sys.exit(f"not every payment was booked once in: {', '.join(wrong)}; no table is made")
    if folder.is_dir():
        page = pathlib.Path(sys.argv[2])
        page.write_text(written(page.read_text(), runs))
    else:
        print("\n\n".join("\n".join(lines) for lines in tables(runs).values()))


if __name__ == "__main__":
    main()
