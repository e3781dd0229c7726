#!/usr/bin/env python3
"""Holds the first walk of docs/way-of-a-message.md: at most 15 files, and what to read is in them.

Each row names a file, then functions, then a colon and what they do. The file must have the functions.
"""

import re

import source_tree

PAGE = "docs/way-of-a-message.md"
MOST_FILES = 15
SECTION = re.compile(r"^## A first walk\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| \d+ \| `([^`]+)` \| ([^|]*) \|$", re.MULTILINE)
FUNCTION = re.compile(r"`(\w+(?:::\w+)?)`")


def check(root):
    section = SECTION.search((root / PAGE).read_text())
    rows = ROW.findall(section.group(1)) if section else []
    complaints = []
    if not rows:
        complaints.append(f"{PAGE} has no first walk")
    if len(rows) > MOST_FILES:
        complaints.append(f"{PAGE}: the walk has {len(rows)} files, {MOST_FILES} are allowed: join "
                          "or leave out what teaches nothing")
    for file, read in rows:
        if not (root / file).is_file():
            complaints.append(f"{PAGE}: the walk names {file}, which is not there")
            continue
        text = source_tree.without_comments_and_strings((root / file).read_text())
        for name in FUNCTION.findall(re.split(r"(?<!:):(?!:)", read)[0]):
            if not re.search(rf"\b{name}\(", text):
                complaints.append(f"{PAGE}: the walk names {name} in {file}, which has none")
    return complaints


def page(*rows):
    return "# Way\n\n## A first walk\n\n| | file | read |\n|---|---|---|\n" + "".join(
        f"| {number} | `{file}` | {read} |\n" for number, (file, read) in enumerate(rows, 1)
    ) + "\n## Next\n\n| 1 | `src/gone.cpp` | `gone` |\n"


GOOD = ("src/a.cpp", "`A::run` and `help`: what `not_there` does")
HEALTHY = {
    PAGE: page(GOOD, ("sql/a.sql", "the statement")),
    "src/a.cpp": "void A::run() { help(); }\n// B::run() is elsewhere\n",
    "sql/a.sql": "SELECT 1\n",
}
FAULTS = [
    ({PAGE: page(("src/b.cpp", "`A::run`"))}, ["src/b.cpp, which is not there"]),
    ({PAGE: page(("src/a.cpp", "`B::run`: it runs"))}, ["B::run in src/a.cpp"]),
    ({PAGE: page(("src/a.cpp", "`halt`"))}, ["halt in src/a.cpp"]),
    ({PAGE: page(*[GOOD] * 16)}, ["16 files"]),
    ({PAGE: "# Way\n"}, ["no first walk"]),
]

if __name__ == "__main__":
    source_tree.main(check, HEALTHY, FAULTS)
