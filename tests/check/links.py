#!/usr/bin/env python3
"""Holds the links between pages: each names a file that is there, and a heading of that file.

Sources name pages as docs/PAGE.md or docs/PAGE.md#heading, in comments, messages and alerts; those
must be there, too. So must a source file that a page names as `src/a/b.cpp` or `b.cpp`. Addresses on
the web are not looked at, nor which files the diary in docs/lab names.
"""

import os
import re

import source_tree

SOURCES = ("include", "src", "sql", "migrations", "tests", "examples", "templates", "deploy", "scripts",
           "cmake", "docs")
PAGE_IN_SOURCE = re.compile(r"\bdocs/[\w/-]+\.md(?:#[\w-]+)?")
SOURCE_IN_PAGE = re.compile(r"`((?:[\w-]+/)*(?!context\.sql)[\w-]+\.(?:cpp|hpp|sql|psql|py|sh))`")
NOT_OURS = ("tests/check/",)  # their planted faults name pages that are not there


def without_code_blocks(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text):
    """As GitHub makes them; a heading that comes again gets a number."""
    found, seen = set(), {}
    for heading in re.findall(r"^#+ (.*)$", without_code_blocks(text), re.MULTILINE):
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if anchor in seen else anchor)
        seen[anchor] = seen.get(anchor, 0) + 1
    return found


def pages(root):
    return sorted(root.glob("*.md")) + sorted(
        path for folder in SOURCES for path in (root / folder).rglob("*.md"))


def complaint_about(root, where, target, anchor):
    if not target.is_relative_to(root) or not target.exists():
        return f"{where} links to {os.path.relpath(target, root)}, which is not there"
    if anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
        return f"{where} links to #{anchor} of {target.relative_to(root)}, which has no such heading"
    return None


def complaints_about_sources(root):
    known = {path.relative_to(root).as_posix()
             for folder in SOURCES for path in (root / folder).rglob("*") if path.is_file()}
    known |= {name.removeprefix("include/") for name in known}  # as it is included
    names = {name.rsplit("/", 1)[-1] for name in known}
    for page in pages(root):
        where = page.relative_to(root)
        if where.parts[:2] == ("docs", "lab"):
            continue
        for name in SOURCE_IN_PAGE.findall(without_code_blocks(page.read_text())):
            if name not in (known if "/" in name else names):
                yield f"{where} names {name}, which is not there"


def links(root):
    """(file that links, target, anchor)."""
    for page in pages(root):
        text = re.sub(r"``.+?``|`[^`\n]*`", "", without_code_blocks(page.read_text()))
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if not re.match(r"[a-z]+:", link):
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                yield page.relative_to(root), target, anchor
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*")):
            name = str(path.relative_to(root))
            if path.suffix == ".md" or not path.is_file() or name.startswith(NOT_OURS):
                continue
            for link in PAGE_IN_SOURCE.findall(path.read_bytes().decode(errors="ignore")):
                page, _, anchor = link.partition("#")
                yield name, root / page, anchor


def check(root):
    root = root.resolve()
    found = {complaint_about(root, *link) for link in links(root)}
    return sorted((found - {None}) | set(complaints_about_sources(root)))


HEALTHY = {
    "README.md": "# A page\n[one](docs/a.md#what-to-do-when-) [two](docs) [web](https://example.org/x#y)\n"
                 "`[no](link.md)`\n```\n[no](link.md)\n# no heading\n`no.cpp`\n```\n",
    "docs/a.md": "# A `b_c`, [d](../README.md)\n## What to do when …\n## Twice\n## Twice\n"
                 "[up](../README.md#a-page) [here](#a-b_c-d) [again](#twice-1) `src/a.cpp` `a.cpp`\n",
    "docs/lab/a.md": "`src/gone.cpp`\n",
    "src/a.cpp": "// See docs/a.md#twice and docs/a.md.\n",
}
FAULTS = [
    ({"docs/b.md": "[gone](c.md)\n"}, ["docs/b.md links to docs/c.md"]),
    ({"docs/b.md": "[gone](a.md#thrice)\n"}, ["#thrice of docs/a.md"]),
    ({"docs/b.md": "# B\n[gone](#c)\n"}, ["#c of docs/b.md"]),
    ({"docs/b.md": "[gone](../README.md#no-heading)\n"}, ["#no-heading of README.md"]),
    ({"docs/b.md": "[out](../../b.md)\n"}, ["links to ../b.md"]),
    ({"README.md": "![picture](docs/a.svg)\n[one](docs/a.md)\n"},
     ["#a-page of README.md", "docs/a.svg"]),
    ({"src/b.cpp": "// docs/b.md tells it.\n"}, ["src/b.cpp links to docs/b.md"]),
    ({"deploy/a.yml": "runbook: docs/a.md#gone\n"}, ["deploy/a.yml links to #gone"]),
    ({"tests/check/b.py": "docs/b.md\n"}, []),
    ({"docs/b.md": "In `src/b.cpp`.\n"}, ["docs/b.md names src/b.cpp"]),
    ({"docs/b.md": "In `b.sql` and `src/a.cpp`.\n"}, ["docs/b.md names b.sql"]),
]

if __name__ == "__main__":
    source_tree.main(check, HEALTHY, FAULTS)
