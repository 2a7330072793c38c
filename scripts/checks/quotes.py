#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the code in the documents is code that is compiled and run.

usage: quotes.py ROOT

Every block of C++ in README.md and docs/ must stand in one of the examples as it is, line by line; only the indentation
that all of its lines have in common may differ. So what a reader copies compiles.

Code that is written against another library, and that nothing here compiles, is marked as such:

    ```cpp foreign

No other mark is known, so that none escapes by a slip of the pen.
"""

import pathlib
import re
import sys
import textwrap

FENCE = re.compile(r"^[ ]*(```+|~~~+)[ ]*([^\n`]*)\n(.*?)^[ ]*\1[ ]*$", re.MULTILINE | re.DOTALL)
CPP = {"cpp", "c++", "cxx", "cc", "hpp", "c"}


def lines_of(text):
    """The lines without their common indentation and what cannot be seen at their ends."""
    return [line.rstrip() for line in textwrap.dedent(text).strip("\n").splitlines()]


def stands_in(example, quoted):
    """Does the example, a list of lines, contain these lines?"""
    for start in range(len(example) - len(quoted) + 1):
        # A look at the first line is enough to pass by almost everywhere.
        if example[start].strip() != quoted[0].strip():
            continue
        if lines_of("\n".join(example[start:start + len(quoted)])) == quoted:
            return True
    return False


def blocks_of(text):
    """The blocks of C++ of a document: what they are marked with, and their lines."""
    for _, info, body in FENCE.findall(text):
        language, *marks = info.lower().split() or [""]
        if language in CPP:
            yield marks, lines_of(body)


def wrong_with(marks, quoted, examples):
    if marks == ["foreign"]:
        return None
    if marks:
        return f"'{' '.join(marks)}' is no mark; code of another library is marked as 'cpp foreign'"
    if not quoted:
        return "a block of code is empty"
    if not any(stands_in(example, quoted) for example in examples):
        return f"no example contains the block that begins with: {quoted[0].strip()}"
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    examples = [path.read_text(encoding="utf-8").splitlines() for path in sorted(root.glob("examples/*.cpp"))]
    wrong = []
    count = 0
    for document in [root / "README.md", *sorted(root.glob("docs/**/*.md"))]:
        for marks, quoted in blocks_of(document.read_text(encoding="utf-8")):
            count += not marks
            reason = wrong_with(marks, quoted, examples)
            if reason:
                wrong.append(f"{document.relative_to(root)}: {reason}")
    print("\n".join(wrong) if wrong else f"   {count} blocks of code in the documents are quoted from examples")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
