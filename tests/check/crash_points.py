#!/usr/bin/env python3
"""Holds the crash points to the tests: each place has a name of its own, and a test kills there.

A test names it with how often it is reached, `"claimed:3"`, or with `"claimed:hang"`, or alone where
its file kills: SIGKILL.
"""

import re

import source_tree

POINT = re.compile(r'crash_point\("(\w+)"\)')
COUNTED = re.compile(r'"(\w+):(?:\d+|hang)"')
NAMED = re.compile(r'"(\w+)"')


def killed_in(text):
    return COUNTED.findall(text) + (NAMED.findall(text) if "SIGKILL" in text else [])


def check(root):
    places = {}
    for path in source_tree.files(root, {".cpp"}, ("src",)):
        for name in POINT.findall((root / path).read_text()):
            places.setdefault(name, []).append(str(path))
    killed = {name for path in source_tree.files(root, {".cpp"}, ("tests",))
              if path.stem.endswith("test") for name in killed_in((root / path).read_text())}
    complaints = [f"{places[name][0]}: no test kills a process at {name}"
                  for name in sorted(places) if name not in killed]
    complaints += [f"{name} is at {len(found)} places ({', '.join(found)}): a test cannot tell which"
                   for name, found in sorted(places.items()) if len(found) > 1]
    return complaints


HEALTHY = {
    "src/flow/a.cpp": 'crash_point("claimed");\ncrash_point("handled");\n',
    "tests/e2e/a_e2etest.cpp": 'SIGKILL Values("claimed:2", "handled")',
}
FAULTS = [
    ({"src/flow/b.cpp": 'flow::crash_point("sealed");\n'}, ["no test kills a process at sealed"]),
    ({"src/flow/b.cpp": 'crash_point("claimed");\n'}, ["claimed is at 2 places"]),
    ({"tests/e2e/a_e2etest.cpp": 'SIGKILL Values("claimed:2")  // handled'}, ["at handled"]),
    ({"tests/e2e/a_e2etest.cpp": 'Values("claimed:2", "handled")'}, ["at handled"]),
    ({"tests/e2e/a_e2etest.cpp": 'Values("claimed:2")', "tests/support/b.cpp": '"handled"'},
     ["at handled"]),
]

if __name__ == "__main__":
    source_tree.main(check, HEALTHY, FAULTS)
