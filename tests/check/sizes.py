#!/usr/bin/env python3
"""Holds sizes, as a ratchet: files up to 400 lines, functions up to 70.

What is larger stands in sizes_allowed.txt with its size, `<lines> <file>[:<first line's text>]`,
and may only shrink: an entry that says more than there is must be lowered or go.
"""

import pathlib
import re

import source_tree

MAX_FILE = 400
MAX_FUNCTION = 70
ALLOWED = "tests/check/sizes_allowed.txt"
SCRIPTS = (".py", ".sh", ".cmake", ".sql", ".txt", ".java", ".js", ".css")


def functions(text):
    """(text of the first line, number of lines) of each function body, braces included.

    A heuristic: outside of functions, a brace after a parenthesis opens one, unless the text
    before says that it opens a namespace or type or holds a value.
    """
    code = source_tree.without_comments_and_strings(text)
    code = re.sub(r"^\s*#.*?[^\\]$", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code,
                  flags=re.MULTILINE | re.DOTALL)
    lines = text.split("\n")
    start = 0       # of the text since the last ; { or }
    depth = 0       # inside a function or value
    opened = None   # line where the function began
    for position, character in enumerate(code):
        if character == ";" and depth == 0:
            start, opened = position + 1, None
        elif character == "{":
            if depth > 0:
                depth += 1
                continue
            head = code[start:position]
            is_scope = re.match(r"\s*(template\s*<.*>\s*)?((inline|public|private|protected)\b:?\s*)*"
                                r"(namespace|class|struct|union|enum|extern)\b", head, re.DOTALL)
            continues = opened is not None and head.strip()[:1] in ("", ",")
            if is_scope and "(" not in re.sub(r"\(\s*\)|alignas\(.*?\)", "", head):
                start = position + 1
                continue
            depth = 1
            if not continues:
                first = start + len(head) - len(head.lstrip())
                is_function = "(" in head and not re.search(r"=\s*$", head)
                opened = code.count("\n", 0, first) if is_function else None
        elif character == "}":
            if depth > 1:
                depth -= 1
            elif depth == 1:
                depth = 0
                if opened is not None:
                    end = code.count("\n", 0, position)
                    yield lines[opened].strip(), end - opened + 1
                start = position + 1
            else:
                start = position + 1


def too_large(root):
    """{name: lines} of all that is over a limit."""
    found = {}
    for path in source_tree.files(root, source_tree.CPP + SCRIPTS,
                                  source_tree.FOLDERS + ("cmake", "sql", "migrations", "scripts")):
        text = (root / path).read_text()
        lines = text.count("\n")
        if lines > MAX_FILE:
            found[str(path)] = lines
        if path.suffix in source_tree.CPP:
            for name, length in functions(text):
                if length > MAX_FUNCTION:
                    key = f"{path}:{name}"
                    found[key] = max(found.get(key, 0), length)
    return found


def allowed(root):
    path = root / ALLOWED
    lines = path.read_text().splitlines() if path.exists() else []
    entries = (line.split(" ", 1) for line in lines if line.strip() and not line.startswith("#"))
    return {name: int(size) for size, name in entries}


def check(root):
    found, limits = too_large(root), allowed(root)
    complaints = []
    for name, size in found.items():
        if name not in limits:
            complaints.append(f"{name}: {size} lines are too many "
                              f"(a file may have {MAX_FILE}, a function {MAX_FUNCTION})")
        elif size > limits[name]:
            complaints.append(f"{name}: has grown from {limits[name]} to {size} lines; it may only "
                              "shrink")
    for name, limit in limits.items():
        if found.get(name, 0) < limit:
            complaints.append(f"{name}: has shrunk: lower or remove its {limit} in {ALLOWED}")
    return complaints


def function(lines, head="int f(int x) {"):
    """Source of a function of so many lines."""
    return head + "\n" + "  x += 1;\n" * (lines - 2) + "}\n"


SCOPES = ("namespace a {\nnamespace {\nclass B final : public C {\n public:\n"
          "  B() : x_{1}, y_(2) {}\n%s};\n}  // namespace\n}\n")
TABLE = "const int kTable[] = {\n" + "  1,  // {\n" * 100 + "};\n"
HEALTHY = {
    "src/a.cpp": "#include <a>\n" + SCOPES % function(70) + TABLE + 'auto s = "{{{";\n',
    "src/b.cpp": function(10) * 40,
    "tests/a_test.cpp": function(70, "TEST(A, B) {"),
}
FAULTS = [
    ({"src/c.cpp": function(71)}, ["int f(int x) {: 71 lines"]),
    ({"src/c.cpp": SCOPES % function(71, "  void g() const override {")}, ["void g()"]),
    ({"src/c.cpp": function(71, "A::A(int x) : x_{x},\n  y_(x) {").replace("\n", "\n", 1)},
     ["A::A(int x)"]),
    ({"tests/c_test.cpp": function(90, "TEST(A, C) {")}, ["TEST(A, C)"]),
    ({"src/c.cpp": "int a;\n" * 401}, ["src/c.cpp: 401 lines"]),
    ({"scripts/c.sh": "true\n" * 401}, ["scripts/c.sh: 401 lines"]),
    ({"src/c.cpp": function(72), ALLOWED: "71 src/c.cpp:int f(int x) {\n"}, ["grown from 71 to 72"]),
    ({"src/c.cpp": function(71), ALLOWED: "72 src/c.cpp:int f(int x) {\n"}, ["has shrunk"]),
    ({ALLOWED: "500 src/gone.cpp\n"}, ["has shrunk"]),
    ({"src/c.cpp": function(71), ALLOWED: "# why\n71 src/c.cpp:int f(int x) {\n"}, []),
]

if __name__ == "__main__":
    source_tree.main(check, HEALTHY, FAULTS)
