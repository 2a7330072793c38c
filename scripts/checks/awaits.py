#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that nothing is awaited inside the parentheses of a condition or a loop.

usage: awaits.py ROOT < LIST_OF_FILES

g++ 12 makes a coroutine that never begins to run of one that has a `co_await` there and no local variable. Whether it has
one is easily changed by somebody who knows nothing of that, so it is forbidden everywhere: await into a variable, and
test that. Comments and documents are read as well, because people copy from them.
"""

import pathlib
import re
import sys

READ = {".hpp", ".cpp", ".md"}
KEYWORD = re.compile(r"\b(if|while|switch|for)\s*(?:constexpr\s*)?\(")
# What may hold a parenthesis that opens or closes nothing. It is replaced by as many blanks, so that places stay the same.
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"|\'\\?.\'')
AWAIT = re.compile(r"(?<!operator )\bco_await\b")


def without_literals(text):
    return LITERAL.sub(lambda found: " " * len(found.group()), text)


def end_of_parentheses(text, begin):
    """Where the parenthesis that opens at `begin` is closed; the end of the text if it never is."""
    depth = 0
    for place in range(begin, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    return len(text)


def check(path, text):
    text = without_literals(text)
    for found in KEYWORD.finditer(text):
        begin = found.end() - 1
        awaited = AWAIT.search(text, begin, end_of_parentheses(text, begin))
        if awaited:
            number = text.count("\n", 0, awaited.start()) + 1
            yield f"{path}:{number}: co_await inside {found.group(1)} (...): await into a variable first, because of g++ 12"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    paths = [pathlib.Path(line) for line in sys.stdin.read().splitlines()]
    paths = [path for path in paths if path.suffix in READ]
    wrong = [reason for path in paths for reason in check(path, (root / path).read_text(encoding="utf-8"))]
    print("\n".join(wrong) if wrong else f"   {len(paths)} files await nothing inside a condition")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
