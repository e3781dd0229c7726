#!/usr/bin/env python3
"""Holds the locks: every mutex of src/ is a sync::Mutex and guards something by HAPAX_GUARDED_BY.

A build by clang then proves that code which uses a guarded member holds its mutex (cmake/Layers.cmake).
--self-test also shows that clang finds those faults. It exits 77 without clang++.
"""

import pathlib
import re
import shutil
import subprocess
import sys

import source_tree

MUTEX = "src/sync/mutex.hpp"
OTHERS = {"sync", "tools", "testing"}  # of src/: the wrapper itself, and what no worker runs
PLAIN = re.compile(r"\bstd::(\w*mutex|lock_guard|unique_lock|scoped_lock)\b")
CLANG = ["clang++", "-std=c++20", "-Wthread-safety", "-Werror=thread-safety"]


def check(root):
    texts = {path: (root / path).read_text() for path in source_tree.files(root, source_tree.CPP, ("src",))
             if path.parts[1] not in OTHERS}
    complaints = []
    for path, text in texts.items():
        code = source_tree.without_comments_and_strings(text)
        for match in PLAIN.finditer(code.replace("std::unique_lock<std::mutex>", "")):
            complaints.append(f"{path}: {match.group(0)}: clang checks only what {MUTEX} holds")
        for mutex in re.findall(r"sync::Mutex (\w+_);", code):
            if f"GUARDED_BY({mutex})" not in code:
                complaints.append(f"{path}: nothing is HAPAX_GUARDED_BY({mutex})")
    return complaints


def check_planted(root):
    """The tree's own check, and what clang says of each source."""
    complaints = check(root)
    for source in sorted(root.glob("src/a/*.cpp")):
        done = subprocess.run([*CLANG, "-fsyntax-only", f"-I{root}/src", source], capture_output=True, text=True)
        complaints += [line for line in done.stderr.splitlines() if "error:" in line]
    return complaints


def counter(body, header="", member="int count_ HAPAX_GUARDED_BY(mutex_) = 0;"):
    """A class with a lock, in a header and a source."""
    return {"src/a/counter.hpp": '#pragma once\n#include <condition_variable>\n#include "sync/mutex.hpp"\nusing namespace hapax;\n'
                                 f"struct Counter {{\n  int read();\n  void add() HAPAX_REQUIRES(mutex_);\n{header}\n"
                                 f"  std::condition_variable changed_;\n  sync::Mutex mutex_;\n  {member}\n}};\n",
            "src/a/counter.cpp": '#include "a/counter.hpp"\nvoid Counter::add() { ++count_; }\n'
                                 f"int Counter::read() {{ {body} }}\n"}


LOCK = "sync::Lock lock(mutex_); "
HEALTHY = {MUTEX: (pathlib.Path(__file__).parents[2] / MUTEX).read_text(),
           **counter(LOCK + "add(); changed_.wait(lock.waitable(), [&]() HAPAX_REQUIRES(mutex_) "
                            "{ return count_ > 0; }); return count_;")}
FAULTS = [
    (counter("return count_;"), ["requires holding mutex 'mutex_'"]),
    (counter("{ " + LOCK + "} return count_;"), ["requires holding mutex 'mutex_'"]),
    (counter("add(); " + LOCK + "return count_;"), ["calling function 'add'"]),
    (counter(LOCK + "changed_.wait(lock.waitable(), [&] { return count_ > 0; }); return 0;"), ["'count_'"]),
    (counter(LOCK + "return count_;", header="  int peek() { return count_; }"), ["'count_'"]),
    ({"src/a/counter_more.cpp": '#include "a/counter.hpp"\nint peek(Counter& of) { return of.count_; }\n'},
     ["'of.mutex_'"]),
    (counter("return count_;", member="int count_ = 0;"), ["nothing is HAPAX_GUARDED_BY(mutex_)"]),
    ({"src/a/plain.hpp": "#include <mutex>\nstruct Plain { std::mutex mutex_; };\n"}, ["std::mutex"]),
    ({"src/tools/plain.hpp": "#include <mutex>\nstruct Plain { std::mutex mutex_; };\n"}, []),
]

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"] and shutil.which("clang++") is None:
        print("not checked: there is no clang++ here (scripts/install_packages.sh lint)")
        sys.exit(77)
    source_tree.main(check, HEALTHY, FAULTS, check_planted)
