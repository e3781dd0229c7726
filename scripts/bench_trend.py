#!/usr/bin/env python3
"""Keeps how hapax compares with the bare loop, from commit to commit: a trend, not a test of time.

usage: bench_trend.py HAPAX TREND

Runs `HAPAX bench` on the built-in broker, adds a line of JSON to the file TREND, and prints its last ten.
The ratios say more than the paces: hapax and the bare loop alternate, so a slow machine slows both.
MESSAGES=20000 and ROUNDS=5. Exit code 1 only if a payment was not booked once.
"""

import datetime
import json
import os
import pathlib
import subprocess
import sys

MODES = ("message", "batch", "positions", "duplicates")
SHOWN = 10


def commit():
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True,
                           cwd=pathlib.Path(__file__).parent)
    return found.stdout.strip() or "unknown"


def shares(rounds):
    return sorted(round(each["per_second"] / each["bare_per_second"], 3) for each in rounds)


def measure(hapax):
    command = [hapax, "bench", "--json", "--seconds", "0", "--messages", os.environ.get("MESSAGES", "20000"),
               "--rounds", os.environ.get("ROUNDS", "5")]
    for mode in MODES:
        command += ["--mode", mode]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"hapax bench: exit code {done.returncode}\n{done.stdout}")
    return json.loads(done.stdout)


def line_of(report):
    modes = {figures["mode"]: {"share": figures["share"], "rounds": shares(figures["rounds"])}
             for figures in report["throughput"]}
    return {"at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "commit": commit(), "ground": report["ground"], "options": report["options"], "modes": modes}


def cell(modes, mode):
    found = modes.get(mode)
    if not found:
        return ""
    return f"{found['share']:.2f} ({found['rounds'][0]:.2f} to {found['rounds'][-1]:.2f})"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    trend = pathlib.Path(sys.argv[2])
    new = json.dumps(line_of(measure(sys.argv[1])))
    with trend.open("a") as file:
        file.write(new + "\n")
    print("| commit | at | " + " | ".join(MODES) + " |\n|" + "---|" * (2 + len(MODES)))
    for line in trend.read_text().splitlines()[-SHOWN:]:
        one = json.loads(line)
        print("| " + " | ".join([one["commit"], one["at"]] + [cell(one["modes"], mode) for mode in MODES]) + " |")


if __name__ == "__main__":
    main()
