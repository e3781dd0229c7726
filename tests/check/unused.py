#!/usr/bin/env python3
"""Finds what is in the tree but in no program: a .cpp in no target, an SQL statement nobody runs.

A test that no target compiles passes for ever. Arguments: the root and a build folder, configured
with the tests on.
"""

import json
import pathlib
import re

import source_tree


def compiled(build):
    commands = json.loads((build / "compile_commands.json").read_text())
    files = {command["file"] for command in commands}
    for group in [file for file in files if "/Unity/" in file]:  # CMake's, of many sources
        files.update(re.findall(r'^#include "(.+)"', pathlib.Path(group).read_text(), re.M))
    return files


def constant(path):
    """As cmake/EmbedSql.cmake names it."""
    return "sql::k" + "".join(word.capitalize() for word in path.stem.split("_"))


def built_elsewhere(path):
    """tests/fuzz/CMakeLists.txt takes these by their names, in a build of its own (clang)."""
    return path.parts[:2] == ("tests", "fuzz") and path.name.endswith("_fuzz.cpp")


def check(root, build=None):
    known = compiled(build or root / "build")
    complaints = [f"{path}: is in no CMake target"
                  for path in source_tree.files(root, {".cpp"}, ("src", "tests", "examples"))
                  if str((root / path).resolve()) not in known and not built_elsewhere(path)]
    code = "\n".join((root / path).read_text()
                     for path in source_tree.files(root, source_tree.CPP, ("src",)))
    used = set(re.findall(r"\bsql::k\w+", code))
    complaints += [f"{path}: nothing uses {constant(path)}"
                   for path in source_tree.files(root, {".sql"}, ("sql",))
                   if constant(path) not in used]
    return complaints


def check_planted(root):
    """check() with a compile_commands.json, which holds absolute paths, made from a list."""
    listed = (root / "build/listed").read_text().split()
    commands = [{"file": str((root / name).resolve())} for name in listed]
    (root / "build/compile_commands.json").write_text(json.dumps(commands))
    return check(root)


HEALTHY = {
    "build/listed": "src/store/a.cpp tests/store/a_test.cpp",
    "src/store/a.cpp": "run(sql::kTakeOver);\n",
    "tests/store/a_test.cpp": "",
    "tests/fuzz/a_fuzz.cpp": "",
    "sql/message/take_over.sql": "SELECT 1\n",
}
FAULTS = [
    ({"tests/store/b_test.cpp": ""}, ["tests/store/b_test.cpp: is in no CMake target"]),
    ({"tests/fuzz/b.cpp": ""}, ["tests/fuzz/b.cpp: is in no"]),
    ({"examples/b/b.cpp": ""}, ["examples/b/b.cpp: is in no"]),
    ({"sql/take.sql": "SELECT 1\n"}, ["nothing uses sql::kTake"]),
]

if __name__ == "__main__":
    source_tree.main(check, HEALTHY, FAULTS, check_planted)
