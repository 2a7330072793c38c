# SPDX-License-Identifier: MIT
"""What a run of chime_bench has measured, for those who draw it and those who write about it."""

import json
import math

# One hue per contender, of a brightness that reads on white and on black.
COLOURS = {
    "boost.asio": "#d9485f",
    "boost.asio.fresh": "#ec93a0",
    "boost.asio.ahead": "#b03048",
    "boost.asio.pool": "#8f1f38",
    "libuv": "#1f9e89",
    "libevent": "#7fae4e",
    "libev": "#e08e1b",
    "libev.ahead": "#b8720f",
    "std.multimap": "#7d8590",
    "std.priority_queue": "#a9aeb6",
    "go": "#19a7c9",
    "tokio": "#b0703c",
    "chime.wheel": "#3d7bfd",
    "chime.timers": "#2a5bd0",
    "chime.wheel.ahead": "#7aa5ff",
    "chime.timers.ahead": "#5578d8",
    "chime.io_context": "#5f9bff",
    "chime.io_context.slack": "#9cc2ff",
    "chime.runtime": "#1d46a8",
    "chime.runtime.ahead": "#3c5fb5",
    "chime.runtime.slack": "#4668b8",
    "raw.sleeper": "#50565e",
    "layout.lists": "#9064d8",
    "layout.wide_tickets": "#bf9af0",
}


def read_report(path):
    """What chime_bench has written there; ends the program, with what to do, if it has not."""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        if all(part in report for part in ("rows", "early", "workloads", "contenders", "reference")):
            return report
    except (ValueError, TypeError):
        pass
    raise SystemExit(f"{path} is no report; scripts/bench --report FILE writes one")


def colour(contender):
    return COLOURS.get(contender, "#3d7bfd" if is_ours(contender) else "#888888")


def looks_ahead(contender):
    """Whether it is told what comes next."""
    return contender.endswith(".ahead")


def is_ours(contender):
    """Settings of chime that a workload compares count as chime."""
    return contender.startswith(("chime", "slack.", "inline."))


def number(value):
    """Three digits, which is what the measurement gives."""
    return f"{value:.1f}" if abs(value) < 9.95 else f"{value:,.0f}"


def size(n):
    exponent = round(math.log10(n))
    return f"{n:,}" if n == 10**exponent else f"{n:.3g}" if n >= 1_000_000 else f"{n:,}"


def times(ratio):
    """How many times faster, for people."""
    return f"×{ratio:.2f}" if ratio < 0.095 else f"×{number(ratio)}"


def with_unit(value, unit):
    """A time in the unit that suits it; anything else as it is."""
    if unit != "ns":
        return number(value) if value else "0"
    for limit, divisor, name in ((1e9, 1e9, "s"), (1e6, 1e6, "ms"), (1e4, 1e3, "µs")):
        if abs(value) >= limit:
            return f"{value / divisor:.3g} {name}" if abs(value) < 1e3 * divisor else f"{value / divisor:,.0f} {name}"
    return f"{number(value)} ns"


class Report:
    """The medians by (workload, contender, case), where a case is (n, threads)."""

    def __init__(self, data):
        self.data = data
        self.reference = data["reference"]
        self.medians = {(it["workload"], it["contender"], (it["n"], it["threads"])): it["median"] for it in data["rows"]}
        self.figures = {
            (it["workload"], it["contender"], (it["n"], it["threads"])): it["figures"]
            for it in data["rows"] if it.get("figures")
        }
        self.units = {it["name"]: it.get("unit", "ns") for it in data["workloads"]}
        ran = {it["contender"] for it in data["rows"]}
        self.contenders = [it["name"] for it in data["contenders"] if it["name"] in ran]
        # Where settings of chime are compared they stand in the place of contenders, behind the others.
        self.variants = [name for name in dict.fromkeys(it["contender"] for it in data["rows"]) if name not in self.contenders]
        self.early = {}
        for row, share in zip(data["rows"], data["early"]):
            self.early[row["contender"]] = max(self.early.get(row["contender"], 0), share)

    @staticmethod
    def read(path):
        return Report(read_report(path))

    def cases(self, workload):
        return sorted({case for name, _, case in self.medians if name == workload})

    def is_threaded(self, workload):
        return len({threads for _, threads in self.cases(workload)}) > 1

    def title(self, workload, case):
        n, threads = case
        threaded = f", {threads} thread{'s' if threads > 1 else ''}" if self.is_threaded(workload) else ""
        return f"N = {size(n)}{threaded}"

    def present(self, workload, case):
        """(contender, median) of those that ran, in the order of the list."""
        found = [(name, self.medians.get((workload, name, case))) for name in self.contenders + self.variants]
        return [(name, median) for name, median in found if median is not None]

    def ratio(self, workload, contender, case):
        """How many times faster than the reference; None where that says nothing."""
        reference = self.medians.get((workload, self.reference, case))
        median = self.medians[workload, contender, case]
        return reference / median if reference and reference > 0 and median > 0 else None

    def repetitions(self):
        counts = sorted({it["repetitions"] for it in self.data["rows"]})
        return " to ".join(str(count) for count in sorted({counts[0], counts[-1]}))

    def remarks(self):
        """What a reader has to know before he believes anything."""
        said = []
        if not self.data["complete"]:
            said.append("The run was cut short; these results are partial.")
        wrong = self.data.get("wrong_answers", [])
        if wrong:
            runs = "1 run gave a wrong answer and does" if len(wrong) == 1 else f"{len(wrong)} runs gave wrong answers and do"
            said.append(f"{runs} not count: {'; '.join(wrong)}.")
        # A single thread that never waits has a processor to itself, or else others had it.
        alone = sorted(found["processors"] for (_, _, (_, threads)), found in self.figures.items()
                       if threads == 1 and "processors" in found)
        if alone and alone[len(alone) // 2] < 0.85:
            said.append("The machine was busy with something else meanwhile: what is measured in wall time, which is all "
                        "that has threads, sleeps or waits, is worse than it need be.")
        return said

    def compared(self):
        """For each workload and case: every part of chime that took part, and the best of the others, by median.

        Who is early more often than not, and what is no timer service, is no rival. Those who are told what comes next
        have only their like for rivals."""
        for workload in self.data["workloads"]:
            name = workload["name"]
            for case in self.cases(name):
                rows = self.present(name, case)
                ours = [row for row in rows if row[0].startswith("chime")]
                others = [row for row in rows if not is_ours(row[0]) and row[1] >= 0
                          and not row[0].startswith(("layout", "raw", "boost.asio.fresh"))]
                for each in ours:
                    rivals = [row for row in others if looks_ahead(row[0]) == looks_ahead(each[0])]
                    if rivals:
                        yield name, case, each, min(rivals, key=lambda it: it[1])
