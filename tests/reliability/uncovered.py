#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what no test runs with the list of reasons: uncovered.py ROOT COVERAGE_SUMMARY.json

Every file of the library of which less is run than what is asked for must have an entry in uncovered.txt, beside this file, and
every entry must name a file that is there."""

import json
import pathlib
import sys

least_line_percent = 95


def entries(root):
    """The list, as (file, what, why)."""
    lines = (root / "tests" / "reliability" / "uncovered.txt").read_text(encoding="utf-8").splitlines()
    return [tuple(part.strip() for part in line.split("|")) for line in lines if line and not line.startswith("#")]


def main():
    root = pathlib.Path(sys.argv[1])
    files = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))["files"]
    listed = {file for file, _, _ in entries(root)}
    wrong = [f"{file['filename']} is run to {file['line_percent']} % and is not in tests/reliability/uncovered.txt; "
             "write a test, or the reason why there is none"
             for file in files
             if file["line_total"] and file["line_percent"] < least_line_percent and file["filename"] not in listed]
    wrong += [f"{file} is in tests/reliability/uncovered.txt and not in the library; remove the line"
              for file in sorted(listed) if not (root / file).exists()]
    for message in wrong:
        print(f"   {message}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
