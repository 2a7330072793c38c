#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks names of files and functions, and the licence line.

usage: names.py ROOT < LIST_OF_FILES

Files and folders are named in snake_case. No file and no function bears a word that says nothing about what it does.
Every source file says under which licence it may be used, in its first three lines.
"""

import pathlib
import re
import sys

EMPTY_WORDS = {"process", "processes", "processing", "handle", "handles", "handling", "manage", "manages", "manager",
               "helper", "helpers", "util", "utils", "utility"}
# A process is a thing in this name, not a vague verb.
ALLOWED = {"process_seed"}
# So is a handle, at the end of a name: timer_handle, handles_; what begins with it handles something, whatever that means.
NOUNS_AT_THE_END = {"handle", "handles"}

SNAKE_CASE = re.compile(r"^\.?[a-z0-9]+([_.-][a-z0-9]+)*$")
# These are named by the tools that read them, or by custom.
NAMED_BY_OTHERS = {"CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "CONTRIBUTING.md", "CHANGELOG.md",
                   "Cargo.toml"}

CALLABLE = re.compile(r"\b([a-z_][a-z0-9_]*)\s*\(")
CPP = {".hpp", ".cpp"}
SOURCE = CPP | {".cmake", ".py", ".sh", ".in", ".map", ".pml", ".go", ".rs"}
COMMENT = re.compile(r"//.*|\"(\\.|[^\"\\])*\"")


def is_source(path):
    return path.suffix in SOURCE or path.name == "CMakeLists.txt" or path.parts[0] in ("scripts", ".ci") and not path.suffix


def empty_words(name):
    if name in ALLOWED:
        return []
    words = [word for word in name.split("_") if word and word not in ("test", "tests")]
    if words and words[-1] in NOUNS_AT_THE_END:
        words.pop()
    return [word for word in words if word in EMPTY_WORDS]


def check_file_name(path):
    for part in path.parts:
        if part not in NAMED_BY_OTHERS and not SNAKE_CASE.match(part):
            yield f"{path}: name it in snake_case"
    for word in empty_words(path.stem.replace("-", "_").replace(".", "_")):
        yield f"{path}: '{word}' does not say what the file is about"


def check_function_names(path, text):
    for number, line in enumerate(text.splitlines(), start=1):
        for name in CALLABLE.findall(COMMENT.sub("", line)):
            for word in empty_words(name):
                yield f"{path}:{number}: '{word}' in {name}() does not say what it does"


def check(root, path):
    yield from check_file_name(path)
    if not is_source(path):
        return
    text = (root / path).read_text(encoding="utf-8")
    if not any("SPDX-License-Identifier: MIT" in line for line in text.splitlines()[:3]):
        yield f"{path}: the line 'SPDX-License-Identifier: MIT' is missing at the top"
    if path.suffix in CPP:
        yield from check_function_names(path, text)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    paths = [pathlib.Path(line) for line in sys.stdin.read().splitlines()]
    wrong = [reason for path in paths for reason in check(root, path)]
    print("\n".join(wrong) if wrong else f"   {len(paths)} files are named and licensed as they should be")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
