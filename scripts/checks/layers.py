#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that includes point down only.

usage: layers.py ROOT

The layers, lowest first; what stands on one line does not include each other:

    base
    wheel, timer
    task
    worker
    runtime
    toolkit, testing, asio

A folder of src/ includes itself, the folders below it and public headers. A public header includes public headers
and detail/. wheel.hpp stands alone: it includes the standard library only. And only src/base meets the platform: the
rest of src/ includes no header of the operating system and none of the standard library's that it wraps.
"""

import pathlib
import re
import sys

LAYERS = [["base"], ["wheel", "timer"], ["task"], ["worker"], ["runtime"], ["toolkit", "testing", "asio"]]
LEVEL = {folder: level for level, folders in enumerate(LAYERS) for folder in folders}

# What src/base wraps, so that a test build can replace it.
WRAPPED = {"atomic", "thread", "mutex", "shared_mutex", "condition_variable", "future", "semaphore", "latch", "barrier"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1) == "<", found.group(2)


def is_standard(name):
    """Headers of the C++ library have neither a folder nor an extension."""
    return "/" not in name and "." not in name


def wrong_with_public(path, name, angled):
    if path.name == "wheel.hpp" and path.parent.name == "chime":
        return None if angled and is_standard(name) else "wheel.hpp stands alone: the standard library only"
    if angled and (is_standard(name) or name.startswith("chime/")):
        return None
    return "a public header includes <chime/...> and the standard library only"


def wrong_with_source(folder, name, angled):
    if angled:
        if name.startswith("chime/") or folder == "base":
            return None
        if is_standard(name) and name not in WRAPPED:
            return None
        return "only src/base meets the platform; use what it offers"
    target = name.split("/")[0]
    if "/" not in name or target not in LEVEL:
        return 'name a file of src/ by its folder, as in "base/futex.hpp"'
    if target == folder or LEVEL[target] < LEVEL[folder]:
        return None
    if LEVEL[target] == LEVEL[folder]:
        return f"{folder} and {target} are neighbours and do not include each other"
    return f"{folder} lies below {target}"


def check(root):
    for path in sorted((root / "include").rglob("*.hpp")):
        for number, angled, name in includes(path):
            yield path, number, name, wrong_with_public(path, name, angled)
    for path in sorted([*(root / "src").rglob("*.hpp"), *(root / "src").rglob("*.cpp")]):
        folder = path.relative_to(root / "src").parts[0]
        if folder not in LEVEL:
            yield path, 1, folder, f"src/{folder} has no place among the layers"
            continue
        for number, angled, name in includes(path):
            yield path, number, name, wrong_with_source(folder, name, angled)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    seen = 0
    wrong = []
    for path, number, name, reason in check(root):
        seen += 1
        if reason:
            wrong.append(f"{path.relative_to(root)}:{number}: {name}: {reason}")
    print("\n".join(wrong) if wrong else f"   {seen} includes point down")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
