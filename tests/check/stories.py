#!/usr/bin/env python3
"""Holds docs/failures.md to the tests: each story names one that shows it, and that one exists.

A story is a section (##). It names its tests as `Suite.Test`; of parametrized ones as gtest does,
`Prefix/Suite.Test`, without what follows the last slash.
"""

import re

import source_tree

PAGE = "docs/failures.md"
TEST = re.compile(r"^\s*TEST(_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
INSTANCE = re.compile(r"INSTANTIATE_TEST_SUITE_P\(\s*(\w+),\s*(\w+)\s*,")
NAMED = re.compile(r"`((?:\w+/)?[A-Z]\w*\.[A-Z]\w+)`")


def tests_of(root):
    found = set()
    for path in source_tree.files(root, {".cpp"}, ("tests",)):
        text = (root / path).read_text()
        prefixes = {}
        for prefix, suite in INSTANCE.findall(text):
            prefixes.setdefault(suite, []).append(prefix + "/")
        for kind, suite, name in TEST.findall(text):
            for prefix in prefixes.get(suite, []) if kind == "_P" else [""]:
                found.add(f"{prefix}{suite}.{name}")
    return found


def check(root):
    known = tests_of(root)
    complaints = []
    stories = re.split(r"^## ", (root / PAGE).read_text(), flags=re.MULTILINE)[1:]
    if not stories:
        complaints.append(f"{PAGE} tells no story")
    for story in stories:
        title = story.split("\n", 1)[0]
        named = NAMED.findall(story)
        if not named:
            complaints.append(f"{PAGE}: \"{title}\" names no test that shows it")
        complaints += [f"{PAGE}: \"{title}\" names {test}, which is no test"
                       for test in named if test not in known]
    return complaints


HEALTHY = {
    PAGE: "# Stories\n\n## One\nShown by `Retry.Waits` and `Each/Death.IsOne`; see `a.b`.\n",
    "tests/a/a_test.cpp": "TEST(Retry, Waits) {\nTEST_P(Death, IsOne) {\n"
                          "INSTANTIATE_TEST_SUITE_P(\n    Each, Death, testing::Values(1));\n",
}
FAULTS = [
    ({PAGE: "## One\nNothing shows it.\n"}, ["names no test"]),
    ({PAGE: "## One\n`Retry.Waits`\n\n## Two\n`Retry.Gone`\n"}, ["names Retry.Gone"]),
    ({PAGE: "## One\n`Death.IsOne`\n"}, ["names Death.IsOne"]),
    ({PAGE: "## One\n`Other/Death.IsOne`\n"}, ["names Other/Death.IsOne"]),
    ({PAGE: "# Stories\n"}, ["tells no story"]),
    ({"tests/a/a_test.cpp": "// TEST(Retry, Waits)\n"},
     ["names Retry.Waits", "names Each/Death.IsOne"]),
]

if __name__ == "__main__":
    source_tree.main(check, HEALTHY, FAULTS)
