#!/usr/bin/python3
"""Shows that the chaos run can fail: workers with one invariant broken each must be found.

    tests/chaos/mutants.py                      # all; prints the table
    tests/chaos/mutants.py drift-is-duplicate   # some
    tests/chaos/mutants.py --step build         # first all builds, then, with --step hunt, all runs

Each is a textual edit. One of C++ is built in a copy of the source tree under build/mutants; one of SQL
alone is written into a copy of the binary, which carries its statements and migrations. A mutant is found when a run says BROKEN,
or when the simulation fails that is to find it. A run in which the harness itself failed shows nothing,
and is counted. Exit codes: 0 all were found; 1 one was not.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from mutant_list import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "build/mutants"
TREE = PLACE / "tree"
COPIED = ("CMakeLists.txt", "cmake", "deploy", "examples", "include", "migrations", "sql", "src", "LICENSE",
          "CMakePresets.json", "tests", "templates", "scripts")
FIRST_SEED = 1
SOAK = ("MINUTES=6", "RATE=70")  # the shortest, so that keys are kept for a minute


def prepare(tests):
    """A configured copy of the tree. By content: a file that an edit was taken back from must stay
    newer than what was built of the edit."""
    TREE.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        subprocess.run(["rsync", "-rlc", "--delete", ROOT / name, TREE], check=True)
    subprocess.run(["cmake", "--preset", "ci", f"-DHAPAX_TESTS={'ON' if tests else 'OFF'}"],
                   cwd=TREE, check=True, stdout=subprocess.DEVNULL)


def mutated(name, edits):
    """file -> its text with the edits."""
    texts = {}
    for file, old, new in edits:
        text = texts.get(file) or (ROOT / file).read_text()
        if text.count(old) != 1:
            raise SystemExit(f"{name}: {file} holds this {text.count(old)} times, not once: {old}")
        texts[file] = text.replace(old, new)
    return texts


def patch(name, texts):
    """The mutant's binary, where only SQL changes: it has room for that in the comments."""
    binary = (ROOT / "build/release/bin/hapax").read_bytes()
    for file, text in texts.items():
        old = (ROOT / file).read_bytes()
        new = "".join(line for line in text.splitlines(True) if not line.startswith("--")).encode()
        if binary.count(old) != 1 or len(new) > len(old):
            raise SystemExit(f"{name}: {file} does not stand once in build/release/bin/hapax, or "
                             "is longer with the edit than with its comments")
        binary = binary.replace(old, new + b"\n" * (len(old) - len(new)))
    target = PLACE / name / "bin/hapax"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(binary)
    target.chmod(0o755)


def build(name, texts, simulated):
    """The mutant's binary, in a folder of its own; or the tests with it."""
    target, binary = ("hapax_tests", "hapax_tests") if simulated else ("hapax_binary", "hapax")
    for file, text in texts.items():
        (TREE / file).write_text(text)
    try:
        subprocess.run(["cmake", "--build", "build/release", "--target", target], cwd=TREE,
                       check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "CCACHE_BASEDIR": str(TREE)})
        (PLACE / name / "bin").mkdir(parents=True, exist_ok=True)
        built = TREE / "build/release/bin" / binary
        subprocess.run(["strip", "-o", PLACE / name / "bin" / binary, built], check=True)
    finally:
        for file in texts:
            (TREE / file).write_text((ROOT / file).read_text())


def simulate(name):
    """As the first of hunt(), by the simulation."""
    began = time.monotonic()
    done = subprocess.run([PLACE / name / "bin/hapax_tests", "--gtest_filter=PollSimulation.*"],
                          capture_output=True, text=True)
    found = re.search(r"^seed (\d+) .*\n(?:\d{4}-.*\n)*(.+)", done.stdout, re.MULTILINE)
    return found and (int(found[1]), time.monotonic() - began, found[2])


def hunt(name, mutant, seeds, minutes):
    """(seed, seconds, what was found) of the first run that found it, or None; and what the harness
    itself complained of, for each run in which it failed."""
    results = PLACE / name / "results"
    results.unlink(missing_ok=True)
    began = time.monotonic()
    failures = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        how = [ROOT / "tests/chaos/run", f"SEED={seed}", f"MINUTES={minutes}",
               "--world", mutant.world]
        if mutant.soak:
            how = [ROOT / "tests/chaos/soak", f"SEED={seed}", *SOAK, "--output", PLACE / name]
        if mutant.faults:
            how += ["--faults", mutant.faults]
        subprocess.run([*how, "--build", PLACE / name, "--results", results,
                        "--variant", json.dumps(mutant.variant), "--no-keep"],
                       stdout=open(PLACE / name / "log", "a"), stderr=subprocess.STDOUT)
        broken = json.loads(results.read_text().splitlines()[-1])["broken"]
        if broken and "the harness itself" in broken[0]:
            failures.append(broken[0])
        elif broken:
            return (seed, time.monotonic() - began, broken[0]), failures
    return None, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MUTANTS)}")
    parser.add_argument("--seeds", type=int, default=4, help="tried before one counts as missed")
    parser.add_argument("--minutes", type=float, default=0.7)
    parser.add_argument("--step", choices=("build", "hunt"), help="only this; default: both")
    options = parser.parse_args()
    for name in options.names:
        if name not in MUTANTS:
            parser.error(f"no mutant {name}; there are {', '.join(MUTANTS)}")
    wanted = {name: MUTANTS[name] for name in options.names or MUTANTS}
    if options.step != "hunt":
        texts = {name: mutated(name, mutant.edits) for name, mutant in wanted.items()}
        sql = {name for name, files in texts.items()
               if all(f.startswith(("sql/", "migrations/")) for f in files)}
        for name in sql:
            patch(name, texts[name])
        if set(texts) - sql:
            prepare(any(mutant.world == "simulation" for mutant in wanted.values()))
        for name in set(texts) - sql:
            build(name, texts[name], wanted[name].world == "simulation")
    if options.step == "build":
        return
    missed = 0
    for name, mutant in wanted.items():
        found, failures = ((simulate(name), []) if mutant.world == "simulation"
                           else hunt(name, mutant, options.seeds, options.minutes))
        missed += found is None
        told = f"seed {found[0]}, {found[1]:.0f} s: {found[2][:160]}" if found else "NOT FOUND"
        if failures:
            told += f"; the harness failed {len(failures)} times, such as: {failures[0][:160]}"
        print(f"{name:32} {told}", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
