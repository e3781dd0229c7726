#!/usr/bin/env python3
"""Runs the three ways of docs/gate.md to derive a client's key: each must give the page's key.

They must also agree on parts that are empty, hold blanks or are not ASCII. Arguments: the root and a
C++ compiler, or --self-test.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

PAGE = "docs/gate.md"
SECTION = re.compile(r"^## A client's key\n(.*?)^## ", re.MULTILINE | re.DOTALL)
OPERATIONS = [("refund", "order-17", "1"), ("refund", "", "order 17"), ("zurück", "Bestellung-17"),
              ("re", "fundorder-17", "1")]
MAIN = """
#include <cstdio>
int main(int, char** a) {
  std::puts(idempotency_key(%s).c_str());
}
"""


def block(section, language):
    return re.search(rf"```{language}\n(.*?)```", section, re.DOTALL).group(1)


def by_python(code, parts):
    names = {}
    exec(code, names)
    return names["idempotency_key"](*parts)


def by_sh(code, parts):
    function = code[:code.index("\n}\n") + 3]
    return subprocess.run(["sh", "-c", function + 'idempotency_key "$@"', "sh", *parts],
                          capture_output=True, text=True, check=True).stdout.strip()


def by_cpp(code, parts, compiler, folder):
    program = pathlib.Path(folder, "key")
    arguments = "{" + ", ".join(f"a[{n + 1}]" for n in range(len(parts))) + "}"
    program.with_suffix(".cpp").write_text(code + MAIN % arguments)
    subprocess.run([compiler, "-std=c++20", "-o", program, program.with_suffix(".cpp"), "-lcrypto"],
                   check=True)
    return subprocess.run([program, *parts], capture_output=True, text=True, check=True).stdout.strip()


def check(page, compiler):
    section = SECTION.search(page).group(1)
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        for parts in OPERATIONS:
            keys = {"python": by_python(block(section, "python"), parts),
                    "sh": by_sh(block(section, "sh"), parts),
                    "cpp": by_cpp(block(section, "cpp"), parts, compiler, folder)}
            if len(set(keys.values())) != 1:
                complaints.append(f"{PAGE}: {parts} has different keys: {keys}")
            if parts == OPERATIONS[0] and f"`{keys['python']}`" not in section:
                complaints.append(f"{PAGE} tells another key for {parts} than {keys}")
    return complaints


def self_test(page):
    faults = [("b\"%d:%s\" % (len(part), part)", "b\"0:%s\" % part", "different keys"),
              ("printf '%s:%s'", "printf '%s-%s'", "different keys"), ("i < 16", "i < 15", "different keys"),
              ("`" + by_python(block(SECTION.search(page).group(1), "python"), OPERATIONS[0]) + "`",
               "`0`", "tells another key")]
    return [f"{fault[0]}: not found" for fault in faults
            if fault[0] not in page or
            not any(fault[2] in c for c in check(page.replace(fault[0], fault[1]), "c++"))]


if __name__ == "__main__":
    root = pathlib.Path(__file__).parents[2] if sys.argv[1] == "--self-test" else pathlib.Path(sys.argv[1])
    text = (root / PAGE).read_text()
    found = self_test(text) if sys.argv[1] == "--self-test" else check(text, sys.argv[2])
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
