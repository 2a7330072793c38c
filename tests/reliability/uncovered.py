#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what no test runs with the list of reasons: uncovered.py ROOT COVERAGE_SUMMARY.json

Every file of the library of which fewer lines or branches are run than what is asked of all must have an entry in uncovered.txt,
beside this file, and every entry must name a file that is there. One branch or two need no entry: whether a race takes them
differs from run to run, and in a small file they are many in a hundred."""

import json
import pathlib
import sys

least_percent = {"line": 95, "branch": 90}
most_without_reason = {"line": 0, "branch": 2}


def entries(root):
    """The list, as (file, what, why)."""
    lines = (root / "tests" / "reliability" / "uncovered.txt").read_text(encoding="utf-8").splitlines()
    return [tuple(part.strip() for part in line.split("|")) for line in lines if line and not line.startswith("#")]


def main():
    root = pathlib.Path(sys.argv[1])
    files = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))["files"]
    listed = {file for file, _, _ in entries(root)}
    wrong = [f"{file['filename']}: {file[kind + '_percent']} % of its {kind}{'s' if kind == 'line' else 'es'} are run, and it is not in "
             "tests/reliability/uncovered.txt; write a test, or the reason why there is none"
             for file in files for kind, least in least_percent.items()
             if file[kind + "_total"] - file[kind + "_covered"] > most_without_reason[kind]
             and file[kind + "_percent"] < least and file["filename"] not in listed]
    wrong += [f"{file} is in tests/reliability/uncovered.txt and not in the library; remove the line"
              for file in sorted(listed) if not (root / file).exists()]
    for message in wrong:
        print(f"   {message}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
