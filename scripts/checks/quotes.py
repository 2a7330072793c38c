#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every block of C++ in the documents must stand, line by line, in one of the examples: quotes.py ROOT"""

import pathlib
import re
import sys


def lines_of(text):
    """The lines that matter, without their indentation."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def main(root):
    examples = {path: lines_of(path.read_text(encoding="utf-8")) for path in sorted(root.glob("examples/*.cpp"))}
    wrong = 0
    count = 0
    for document in [root / "README.md", *sorted(root.glob("docs/**/*.md"))]:
        for block in re.findall(r"^```cpp\n(.*?)^```", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            count += 1
            quoted = lines_of(block)
            starts = range(len(max(examples.values(), key=len, default=[])))
            if not any(lines[start:start + len(quoted)] == quoted for lines in examples.values() for start in starts):
                wrong += 1
                print(f"{document.relative_to(root)}: no example contains the block that begins with: {quoted[0]}")
    if wrong == 0:
        print(f"   {count} blocks of code in the documents are quoted from examples")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
