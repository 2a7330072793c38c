#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the report of chime_bench as a document: markdown.py REPORT.json DOCUMENT.md

The words come from benchmarks_template.md, beside this file; the numbers go where it names them in double braces."""

import pathlib
import sys

from measured import Report, number, times, with_unit


def table(head, rows):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def surroundings(report):
    data = report.data
    said = "".join(f"\n\n**{remark}**" for remark in report.remarks())
    return f"{data['date']} · {data['machine']} · {data['compiler']} · {median_of(report)}.{said}"


def median_of(report):
    times_run = report.repetitions()
    return "single runs" if times_run == "1" else f"medians of {times_run} runs"


def ratio_text(report, workload, contender, case):
    ratio = report.ratio(workload, contender, case)
    return times(ratio) if ratio else "–"


def glance(report):
    rows = []
    for name, case, ours, other in report.compared():
        unit = report.units[name]
        reference = report.medians.get((name, report.reference, case))
        rows.append([f"{name}, {report.title(name, case)}",
                     with_unit(reference, unit) if reference is not None else "–",
                     f"{other[0]} {with_unit(other[1], unit)}",
                     f"{ours[0].removeprefix('chime.')} **{with_unit(ours[1], unit)}**",
                     ratio_text(report, name, ours[0], case)])
    return table(["workload", report.reference, "best of the others", "chime", "ratio"], rows)


def slower(report):
    """Rows in which somebody else has the lead, found and not chosen."""
    rows = []
    for name, case, ours, other in report.compared():
        if other[1] >= ours[1]:
            continue
        unit = report.units[name]
        rows.append([f"{name}, {report.title(name, case)}", f"{other[0]} {with_unit(other[1], unit)}",
                     f"{ours[0]} {with_unit(ours[1], unit)}", f"×{number(ours[1] / other[1])}"])
    if not rows:
        return "Nowhere in this run."
    return table(["workload", "faster", "chime", "by"], rows)


def medians(report, workload):
    name = workload["name"]
    cases = report.cases(name)
    if not cases:
        return ""
    rows = []
    for contender in report.contenders + report.variants:
        values = [report.medians.get((name, contender, case)) for case in cases]
        if all(value is None for value in values):
            continue
        cells = []
        for case, value in zip(cases, values):
            ratio = report.ratio(name, contender, case) if value is not None else None
            shown = "–" if value is None else with_unit(value, report.units[name])
            cells.append(f"{shown} ({times(ratio)})" if ratio else shown)
        rows.append([contender, *cells])
    head = [name, *(report.title(name, case) for case in cases)]
    unit = "" if report.units[name] == "ns" else f" In {report.units[name]}."
    return f"**{name}**: {workload['one_operation']}.{unit}\n\n{table(head, rows)}\n{figures(report, name)}"


def figures(report, name):
    rows = []
    names = list(dict.fromkeys(key for (workload, _, _), found in report.figures.items() if workload == name for key in found))
    if not names:
        return ""
    for case in report.cases(name):
        for contender in report.contenders + report.variants:
            found = report.figures.get((name, contender, case))
            if found:
                values = [f"{found[key]:,.3g}" if key in found and abs(found[key]) < 1000 else
                          f"{found[key]:,.0f}" if key in found else "–" for key in names]
                rows.append([f"{contender}, {report.title(name, case)}", *values])
    return "\n" + table(["beside it", *names], rows) + "\n"


def contenders(report):
    rows = [[it["name"], it["version"], it["clock_reads"], f"{report.early.get(it['name'], 0):.0%}"]
            for it in report.data["contenders"] if it["name"] in report.contenders]
    return table(["name", "version", "reads the clock", "fired early, at most"], rows)


def main(arguments):
    if len(arguments) != 2:
        print("usage: markdown.py REPORT.json DOCUMENT.md", file=sys.stderr)
        return 2
    report = Report.read(arguments[0])
    if not report.medians:
        print("markdown.py: there are no results to write about", file=sys.stderr)
        return 1
    text = (pathlib.Path(__file__).parent / "benchmarks_template.md").read_text(encoding="utf-8")
    text = text.replace("{{surroundings}}", surroundings(report)).replace("{{glance}}", glance(report))
    text = text.replace("{{slower}}", slower(report)).replace("{{contenders}}", contenders(report))
    text = text.replace("{{tables}}", "\n".join(filter(None, (medians(report, it) for it in report.data["workloads"]))))
    pathlib.Path(arguments[1]).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
