#!/usr/bin/env python3
"""Compiles mistakes of handlers' authors. The compiler's first error must be a sentence that tells what to do.
If a factory gets a wrong handler, that sentence is the only error.

Arguments: the root, the C++ compiler and its flags.
"""

import subprocess
import sys

HANDLER = """struct Booking : hapax::Handler {
  void handle(const hapax::Message&, hapax::Context& context) override { %s }
};
"""

MISTAKES = {
    "HAPAX_PLUGIN needs #include <hapax/plugin.hpp>":
        "#include <hapax/handler.hpp>\n" + HANDLER % "context.result(1);" +
        'HAPAX_PLUGIN(hapax::handler<Booking>("booking"))',
    "HAPAX_PLUGIN wants factories":  # not a class, nor a name
        "#include <hapax/plugin.hpp>\n" + HANDLER % "context.result(1);" + "HAPAX_PLUGIN(Booking)",
    "context.pqxx() needs #include <pqxx/pqxx> above the handler":
        "#include <hapax/plugin.hpp>\n" + HANDLER % "auto& transaction = context.pqxx(); (void)transaction;",
    "T must derive publicly from hapax::Handler":
        '#include <hapax/plugin.hpp>\nstruct Booking {};\nHAPAX_PLUGIN(hapax::handler<Booking>("booking"))',
    "T must override void handle(const hapax::Message&, hapax::Context&)":
        "#include <hapax/plugin.hpp>\nstruct Booking : hapax::Handler { void handle(hapax::Message&) {} };\n"
        'HAPAX_PLUGIN(hapax::handler<Booking>("booking"))',
    "message.as<T>() needs NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(T, member…) below T":
        "#include <hapax/plugin.hpp>\nstruct Payment { std::string id; };\n" + (HANDLER % "message.as<Payment>(); context.result(1);").replace(
            "Message&,", "Message& message,"),
    "insert wants one value for each column":
        "#include <hapax/plugin.hpp>\n" + HANDLER % 'context.insert("payments", {"id", "account"}, 1);',
    "hapax needs C++20":
        "// -std=c++17\n#include <hapax/plugin.hpp>\n" + HANDLER % "context.result(1);",
    "T needs a public constructor without parameters":
        "#include <hapax/plugin.hpp>\n" + (HANDLER % "context.result(1);").replace(
            "{\n", "{ explicit Booking(int) {}\n", 1) + 'HAPAX_PLUGIN(hapax::handler<Booking>("booking"))',
}
# The same handler without a mistake, so that a header that never compiles is no success.
RIGHT = "#include <hapax/plugin.hpp>\n" + HANDLER % "context.result(1);" + 'HAPAX_PLUGIN(hapax::handler<Booking>("b"))'


def errors(compiler, root, text):
    """The compiler's errors."""
    standard = "-std=c++17" if text.startswith("// -std=c++17") else "-std=c++20"
    done = subprocess.run([*compiler, standard, f"-I{root}/include", "-fsyntax-only", "-x", "c++", "-"],
                          input=text, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    return [line for line in done.stderr.splitlines() if "error:" in line]


def main():
    root, *compiler = sys.argv[1:]
    wrong = []
    if found := errors(compiler, root, RIGHT):
        wrong.append(f"a handler without a mistake: {found[0]}")
    for sentence, text in MISTAKES.items():
        found = errors(compiler, root, text)
        if not found or sentence not in found[0]:
            wrong.append(f"wanted as the first error: {sentence}\n  found: {found[:1]}")
        if sentence.startswith("T ") and len(found) > 1:
            wrong.append(f"wanted as the only error: {sentence}\n  found, too: {found[1:]}")
    print("\n".join(wrong) or f"{len(MISTAKES)} mistakes, each with its sentence")
    sys.exit(1 if wrong else 0)


main()
