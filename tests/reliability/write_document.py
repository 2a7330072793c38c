#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the document on reliability: write_document.py ROOT DOCUMENT.md

The words come from reliability_template.md, beside this file; the numbers go where it names them in double braces."""

import datetime
import pathlib
import platform
import re
import sys

from figures import Figures, absent
from uncovered import entries


def table(head, rows):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def number(value):
    """A number for people, or why there is none."""
    if value is None or isinstance(value, str):
        return value or absent
    return f"{int(value):,}".replace(",", " ")


def processor():
    try:
        found = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
        return found.group(1) if found else platform.machine()
    except OSError:
        return platform.machine()


def surroundings(_):
    return f"{datetime.date.today().isoformat()} · {processor()} · Linux {platform.release()}"


def tests(figures):
    rows = []
    for report, what in (("release", "g++, optimised"), ("asan", "clang, address and undefined behaviour"),
                         ("tsan", "clang, threads"), ("packaging", "projects that use chime"), ("fuzz", "libFuzzer")):
        cases = figures.cases[report]
        good = sum(1 for case in cases if case[1])
        rows.append([f"{report}: {what}", number(len(cases)) if cases else absent,
                     number(len(cases) - good) if cases else absent,
                     f"{sum(case[2] for case in cases):.0f} s" if cases else absent])
    return table(["build", "tests", "failed", "time of all, one after the other"], rows)


def figures_table(figures):
    mutants = figures.mutants()
    old_bugs = figures.old_bugs()
    models = figures.models()
    rows = [
        ["schedules of threads that the shim has tried", number(figures.sum_of(r"(\d+) executions,"))],
        ["– and in the last full run, `scripts/soak --interleavings`", number(figures.interleavings())],
        ["seeds of whole runtimes on one thread", number(figures.sum_of(r"(\d+) seeds: armed"))],
        ["timers armed in those", number(figures.sum_of(r"\d+ seeds: armed (\d+)"))],
        ["states of the models", number(sum(states or 0 for _, states, _ in models) if models else None)],
        ["mutants of the models, all noticed", number(sum(count or 0 for *_, count in models) if models else None)],
        ["mutants of atomic steps", number(mutants[0] if mutants else None)],
        ["– noticed by a scenario", number(mutants[1] if mutants else None)],
        ["– proven harmless, and why the code is stronger", number(mutants[2] if mutants else None)],
        ["– not noticed", number(mutants[3] if mutants else None)],
        ["old bugs that were put back", number(old_bugs[0] if old_bugs else None)],
        ["– noticed by the test that is named for them", number(old_bugs[1] if old_bugs else None)],
        ["inputs that the fuzzers have tried", number(figures.sum_of(r"number_of_executed_units:\s*(\d+)", "fuzz"))],
    ]
    return table(["what", "how many"], rows)


def models(figures):
    rows = [[f"[`{name}`](../src/worker/models/{name}.pml)", number(states), number(mutants)]
            for name, states, mutants in figures.models()]
    return table(["model", "states", "mutants that fail"], rows) if rows else f"The models were {absent}."


def faults(figures):
    cases = figures.in_folder("faults")
    soak = figures.soak()
    rows = [["tests that inject faults", number(len(cases)) if cases else absent]]
    rows += [["soak: " + key, number(value) if isinstance(value, int) and key != "seed" else str(value)]
             for key, value in (soak or {}).items()]
    if not soak:
        rows.append(["soak", absent])
    return table(["what", "how many"], rows)


def coverage(figures):
    sums = figures.coverage()
    if not sums:
        return f"It was {absent}; `scripts/coverage` does."
    layers = {}
    for file in sums["files"]:
        parts = file["filename"].split("/")
        layer = "/".join(parts[:2]) if parts[0] == "src" else "include/chime"
        added = layers.setdefault(layer, [0, 0, 0, 0])
        for position, key in enumerate(("line_covered", "line_total", "branch_covered", "branch_total")):
            added[position] += file[key]
    rows = [[f"`{layer}`", number(line_total), share(line, line_total), number(branch_total), share(branch, branch_total)]
            for layer, (line, line_total, branch, branch_total) in sorted(layers.items())]
    rows.append(["all", number(sums["line_total"]), f"{sums['line_percent']} %", number(sums["branch_total"]),
                 f"{sums['branch_percent']} %"])
    return table(["layer", "lines", "run", "branches", "taken"], rows)


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "–"


def uncovered(figures):
    return "\n".join(f"| `{file}` | {what} | {why} |" for file, what, why in entries(figures.root))


def main():
    root = pathlib.Path(sys.argv[1])
    figures = Figures(root)
    text = (pathlib.Path(__file__).parent / "reliability_template.md").read_text(encoding="utf-8")
    for name, write in (("surroundings", surroundings), ("tests", tests), ("figures", figures_table), ("models", models),
                        ("faults", faults), ("coverage", coverage), ("uncovered", uncovered)):
        text = text.replace("{{" + name + "}}", write(figures))
    pathlib.Path(sys.argv[2]).write_text(text, encoding="utf-8")


main()
