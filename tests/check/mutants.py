#!/usr/bin/env python3
"""Holds the mutants of tests/chaos to the source: each edit must find its text there, once.

Building and hunting them takes an hour, so without this nobody sees that one has gone stale.
"""

import importlib.util

import source_tree

LIST = "tests/chaos/mutant_list.py"


def mutants_of(root):
    spec = importlib.util.spec_from_file_location("mutant_list", root / LIST)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MUTANTS


def check(root):
    complaints = []
    for name, mutant in mutants_of(root).items():
        for file, old, new in mutant.edits:
            path = root / file
            times = path.read_text().count(old) if path.is_file() else 0
            if times != 1:
                complaints.append(f"{LIST}: {name}: {file} holds this {times} times, not once: {old}")
            if old == new:
                complaints.append(f"{LIST}: {name} changes nothing in {file}")
    return complaints


def listed(old, new="new"):
    return ("import types\n"
            f"MUTANTS = {{'one': types.SimpleNamespace(edits=[('src/a.cpp', {old!r}, {new!r})])}}\n")


HEALTHY = {"src/a.cpp": "old text\n", LIST: listed("old")}
FAULTS = [
    ({LIST: listed("older")}, ["0 times"]),
    ({"src/a.cpp": "old old\n"}, ["2 times"]),
    ({"src/a.cpp": "", }, ["0 times"]),
    ({LIST: listed("old", "old")}, ["changes nothing"]),
]

if __name__ == "__main__":
    source_tree.main(check, HEALTHY, FAULTS)
