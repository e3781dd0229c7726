#!/usr/bin/env python3
"""Holds the language of docs, comments, messages and test names, as a ratchet.

A sentence has at most 25 words, and some words have a plainer one (see INSTEAD). What breaks a rule
today is counted for each area in words_allowed.txt, `<count> <area> <rule>`. A count may only fall;
one that is far above what there is must be lowered.
Run with --list it prints each finding; the pages in docs/lab are a diary and are not read.
"""

import pathlib
import re
import sys

import source_tree

MAX_WORDS = 25
ALLOWED = "tests/check/words_allowed.txt"
# Word -> what to write instead.
INSTEAD = {
    r"mend(s|ed|ing)?": "fix",
    r"anew": "again",
    r"dear": "expensive",
    r"says?|said": "log, print, show, report",
    r"where": "if, when (or the place, by name)",
    r"whoever|whatever|nobody|somebody|everybody": "name the actor",
}
WORDS = re.compile(r"\b(" + "|".join(INSTEAD) + r")\b", re.IGNORECASE)
TEST_NAME = re.compile(r"\bTEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\s*\)")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# A line of a comment that begins a thought of its own.
LABEL = re.compile(r"^\s*(Throws|Blocks|Thread safety|Precondition|Parameters|Rows|Locks)\b.*:")
SQL = re.compile(r"\s*(SELECT|SET LOCAL|CREATE|DROP|ALTER|INSERT)\b")
C_TOKEN = re.compile(r'R"(?P<tag>[^(\s]{0,16})\((?P<raw>.*?)\)(?P=tag)"'
                     r'|"(?P<text>(?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n]){1,8}\''
                     r'|//(?P<comment>[^\n]*)|/\*(?P<long>.*?)\*/', re.DOTALL)


def sentences(block):
    text = re.sub(r"(?<=[a-z])\.(?=[a-z])", "", " ".join(block.split()))  # e.g., file.cpp
    text = re.sub(r"\b(vs|etc|cf|No)\.", r"\1", text)
    return [part for part in re.split(r"(?<=[.!?…])[)\"'*_`]*\s+", text) if part]


def words_in(sentence):
    return [word for word in sentence.split() if re.search(r"\w", word)]


def of_markdown(text):
    """Paragraphs, list items and table cells, without code; a piece of code in a line is one word."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```", "\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"``.+?``|`[^`]*`", "code", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) |\s*\||#)", text):
        if block.lstrip().startswith("|"):
            yield from re.split(r"[|;]", block)  # a cell is often a list
        else:
            yield re.sub(r"^\s*(?:[-*#]+|\d+\.) ", "", block)


def of_lines(comments):
    """Blocks of (line, indent, text) that stand directly below each other."""
    block, last = [], None
    for line, alone, text in comments:
        new = last is None or line != last + 1 or not alone or LABEL.match(text)
        if new or not text.strip() or re.match(r"\s*[-*] ", text):
            yield " ".join(block)
            block = []
        block.append(text)
        last = line if alone else None
    yield " ".join(block)


def of_cpp(text):
    comments, texts = [], []
    end, joined = 0, []
    for token in C_TOKEN.finditer(re.sub(r"(?<=\d)'(?=\d)", " ", text)):
        line = text.count("\n", 0, token.start())
        if token["comment"] is not None or token["long"] is not None:
            start = text.rfind("\n", 0, token.start()) + 1
            alone = not text[start:token.start()].strip()
            comments.append((line, alone, token["comment"] or token["long"] or ""))
        literal = token["raw"] if token["raw"] is not None else token["text"]
        if literal is not None:
            if text[end:token.start()].strip():
                texts.append("".join(joined))
                joined = []
            joined.append(literal.replace("\\n", "\n").replace('\\"', "'"))
            end = token.end()
    return list(of_lines(comments)), texts + ["".join(joined)]


def of_sql(text):
    comments = [(number, not line.split("--")[0].strip(), line.split("--", 1)[1])
                for number, line in enumerate(text.split("\n")) if "--" in line]
    for block in of_lines(comments):
        yield from re.split(r",? (?=\$\d)", block)  # a list of parameters


def pages(root):
    found = [path for path in root.glob("*.md")] + list((root / "docs").glob("*.md"))
    return sorted(path.relative_to(root) for path in found) + source_tree.files(
        root, {".md"}, ("examples",))


def blocks(root):
    """(area, file, block) of everything that people read."""
    for path in pages(root):
        for block in of_markdown((root / path).read_text()):
            yield "docs", path, block
    for folder, area in (("include", "headers"), ("src", "src"), ("tests", "tests"),
                         ("examples", "docs")):
        for path in source_tree.files(root, source_tree.CPP, (folder,)):
            text = (root / path).read_text()
            comments, texts = of_cpp(text)
            for name in TEST_NAME.findall(text):
                yield area, path, HUMP.sub(" ", name)
            for block in comments:
                yield area, path, block
            if folder == "src":
                for text in texts:
                    for block in re.split(r"\n\s*\n|\n(?=\s)|\n(?=\d )", text):
                        if not SQL.match(block):
                            yield "messages", path, block
    for path in source_tree.files(root, {".sql"}, ("sql", "migrations")):
        for block in of_sql((root / path).read_text()):
            yield "sql", path, block


def findings(root):
    """(area, rule, file, what is wrong)."""
    for area, path, block in blocks(root):
        if area == "messages" and len(words_in(block)) < 3:
            continue  # a name or a number, no sentence
        for sentence in sentences(block):
            count = len(words_in(sentence))
            if count > MAX_WORDS:
                yield area, "long-sentence", path, f"{count} words: {sentence}"
            for match in WORDS.finditer(sentence):
                if area == "messages" and match.group(0) == "WHERE":
                    continue  # SQL
                yield area, "word", path, f"\"{match.group(0)}\" in: {sentence}"


def allowed(root):
    lines = (root / ALLOWED).read_text().splitlines() if (root / ALLOWED).exists() else []
    entries = (line.split() for line in lines if line.strip() and not line.startswith("#"))
    return {(area, rule): int(count) for count, area, rule in entries}


def check(root):
    found = {}
    for area, rule, path, what in findings(root):
        found.setdefault((area, rule), []).append(f"{path}: {what}")
    limits = allowed(root)
    complaints = []
    for (area, rule), what in sorted(found.items()):
        limit = limits.get((area, rule), 0)
        if len(what) > limit:
            complaints.append(f"{area}: {len(what)} of {rule}, and {limit} are allowed. Write yours "
                              "in plain words; tests/check/words.py . --list shows all")
    for (area, rule), limit in sorted(limits.items()):
        count = len(found.get((area, rule), []))
        if limit > 20 + count * 3 // 2:  # coarse, so that small edits need not touch the file
            complaints.append(f"{area}: only {count} of {rule} are left: lower {limit} in {ALLOWED}")
    return complaints


LONG = "word " * 26 + "end.\n"
HEALTHY = {
    "README.md": "# A page\n\n" + "Short sentence. " * 30 + "\n\n```sh\n" + LONG + "```\n"
                 "\n| " + "a cell | " * 30 + "\n" + "- item\n" * 30 + "Use `where it mends` here.\n",
    "docs/lab/a.md": LONG + "Mended anew.\n",
    "src/a.cpp": "// A comment.\n" * 30 + 'f("a text"); g("SELECT a WHERE b");\n',
    "sql/a.sql": "-- Purpose: reads.\nSELECT 1 WHERE true;\n",
    ALLOWED: "1 sql word\n",
}
FAULTS = [
    ({"docs/b.md": LONG}, ["docs: 1 of long-sentence"]),
    ({"docs/b.md": "| cell | " + LONG.strip() + " |\n"}, ["docs: 1 of long-sentence"]),
    ({"docs/b.md": "word\n" * 26}, ["docs: 1 of long-sentence"]),
    ({"docs/b.md": "This is mended anew.\n"}, ["docs: 2 of word"]),
    ({"include/b.hpp": "// Says why.\n"}, ["headers: 1 of word"]),
    ({"src/b.cpp": "int a;  // " + LONG}, ["src: 1 of long-sentence"]),
    ({"src/b.cpp": "// word\n" * 26}, ["src: 1 of long-sentence"]),
    ({"src/b.cpp": 'f("this is how"\n  " to mend it");\n'}, ["messages: 1 of word"]),
    ({"tests/b_test.cpp": "// " + LONG}, ["tests: 1 of long-sentence"]),
    ({"tests/b_test.cpp": "TEST_F(B, HaltsWhereItIsMended) {}"}, ["tests: 2 of word"]),
    ({"sql/b.sql": "-- Dear.\n-- Mended.\n"}, ["sql: 2 of word, and 1"]),
    ({"sql/b.sql": "-- Dear.\n"}, []),
    ({ALLOWED: "21 sql word\n"}, ["sql: only 0"]),
]

if __name__ == "__main__":
    if sys.argv[2:] == ["--list"]:
        for area, rule, path, what in findings(pathlib.Path(sys.argv[1])):
            print(f"{area} {rule} {path}: {what}")
    else:
        source_tree.main(check, HEALTHY, FAULTS)
