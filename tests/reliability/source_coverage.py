#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tells gcovr what clang has counted: source_coverage.py ROOT EXPORTS TRACE.json

EXPORTS is a folder with two exports of llvm-cov for every program, NAME.json and NAME.lcov, all made with the counts of all programs.
They are not made for all programs at once: what one program does not use hides there what another one has counted.

Writes a tracefile of gcovr. The lines are those of llvm-cov. A branch is one outcome of a condition in the source; it is taken
if any instantiation in any program has taken it. What the compiler decides is no branch for llvm-cov; what CHIME_CHECK asks is
none here."""

import json
import pathlib
import sys

definition_of_checks = "src/base/check.hpp"


def read_lines(lcov, root):
    """How often each line was run: {(file, line): count}."""
    lines = {}
    for record in lcov.read_text(encoding="utf-8").splitlines():
        key, _, value = record.partition(":")
        if key == "SF":
            name = relative(value, root)
        elif key == "DA":
            line, count = value.split(",")[:2]
            lines[name, int(line)] = int(count)
    return lines


def relative(name, root):
    path = pathlib.PurePath(name)
    return str(path.relative_to(root)) if path.is_relative_to(root) else name


def read_branches(export, root):
    """How often each condition was true, and how often false: {(file, span, outcome): count}."""
    branches = {}
    for function in json.loads(export.read_text(encoding="utf-8"))["data"][0]["functions"]:
        names = [relative(name, root) for name in function["filenames"]]
        for *span, is_true, is_false, file, _, _ in function["branches"]:
            for outcome, count in ("false", is_false), ("true", is_true):
                which = names[file], tuple(span), outcome
                branches[which] = branches.get(which, 0) + count
    return branches


def most(counts):
    """Every program knows the counts of all, of what it uses itself."""
    result = {}
    for each in counts:
        for which, count in each.items():
            result[which] = max(count, result.get(which, 0))
    return result


def lines_of_checks(text):
    """The lines that CHIME_CHECK stands in, from its name to its last parenthesis."""
    found = set()
    open_count = 0
    for number, line in enumerate(text, start=1):
        begin = 0 if open_count > 0 else line.find("CHIME_CHECK(")
        if begin >= 0:
            open_count += line[begin:].count("(") - line[begin:].count(")")
            found.add(number)
    return found


def trace(root, lines, branches):
    names = sorted({name for name, _ in lines if name.startswith(("include/chime/", "src/"))})
    files = {name: {} for name in names}
    for (name, line), count in sorted(lines.items()):
        if name in files:
            files[name][line] = {"line_number": line, "count": count, "branches": [], "gcovr/noncode": False,
                                 "gcovr/excluded": False}
    checks = {name: lines_of_checks((root / name).read_text(encoding="utf-8").splitlines()) for name in names}
    for (name, span, _), count in sorted(branches.items()):
        if name in files and name != definition_of_checks and span[0] not in checks[name]:
            files[name][span[0]]["branches"].append({"count": count, "fallthrough": False, "throw": False})
    return {"gcovr/format_version": "0.3",
            "files": [{"file": name, "functions": [], "lines": list(files[name].values())} for name in names]}


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    exports = pathlib.Path(sys.argv[2])
    lines = most(read_lines(path, root) for path in sorted(exports.glob("*.lcov")))
    branches = most(read_branches(path, root) for path in sorted(exports.glob("*.json")))
    pathlib.Path(sys.argv[3]).write_text(json.dumps(trace(root, lines, branches)), encoding="utf-8")


if __name__ == "__main__":
    main()
