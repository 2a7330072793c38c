#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the report of chime_bench as one HTML page that needs nothing else: report.py REPORT.json PAGE.html"""

import html
import json
import math
import sys

CHART_WIDTH = 360  # Units of a chart; a phone shows one per row at about this many pixels.

# One hue per contender, of a brightness that reads on white and on black.
COLOURS = {
    "boost.asio": "#d9485f",
    "boost.asio.fresh": "#ec93a0",
    "libuv": "#1f9e89",
    "libevent": "#7fae4e",
    "libev": "#e08e1b",
    "std.multimap": "#7d8590",
    "std.priority_queue": "#a9aeb6",
    "chime.wheel": "#3d7bfd",
    "layout.lists": "#9064d8",
    "layout.wide_tickets": "#bf9af0",
}

STYLE = """
:root { color-scheme: light dark; --ink: #1c2127; --soft: #5c6670; --line: #d9dee3; --paper: #ffffff; --track: #f1f3f5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8ebee; --soft: #9aa4ae; --line: #343b43; --paper: #14171a; --track: #20252a; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 24px 16px 48px; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 1.25rem; margin: 40px 0 0; }
p { max-width: 46rem; margin: 8px 0; }
.soft { color: var(--soft); }
.warning { border-left: 4px solid #e08e1b; padding-left: 12px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 24px 48px;
  margin-top: 12px; }
figure { margin: 0; break-inside: avoid; }
figcaption { font-weight: 600; margin-bottom: 4px; }
svg { display: block; width: 100%; height: auto; max-width: 560px; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--ink); }
svg text.soft { fill: var(--soft); }
svg text.strong { font-weight: 700; }
svg .track { fill: var(--track); }
svg .grid { stroke: var(--line); stroke-width: 1; }
.key { display: flex; flex-wrap: wrap; gap: 4px 18px; padding: 0; margin: 12px 0 0; list-style: none; font-size: .9rem; }
.key span { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; margin-top: 12px; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 10px; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, .text th, .text td { text-align: left; }
thead th { color: var(--soft); font-weight: 600; }
@media print {
  :root { --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --track: #eee; }
  body { max-width: none; padding: 0; font-size: 11pt; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  .charts { grid-template-columns: repeat(2, 1fr); }
  section { break-inside: avoid; }
  .wide { overflow: visible; }
  table { font-size: 7pt; }
  th, td { padding: 2px 4px; }
}
"""


def colour(contender):
    return COLOURS.get(contender, "#888888")


def number(value):
    """Three digits, which is what the measurement gives."""
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


def size(n):
    exponent = round(math.log10(n))
    return f"{n:,}" if n == 10**exponent else f"{n:.3g}"


class Report:
    def __init__(self, data):
        self.data = data
        self.reference = data["reference"]
        self.contenders = [it["name"] for it in data["contenders"]]
        self.medians = {(it["workload"], it["contender"], it["n"]): it["median"] for it in data["rows"]}

    def sizes(self, workload):
        return sorted({n for name, _, n in self.medians if name == workload})

    def present(self, workload, n):
        """(contender, median) of those that ran, in the order of the list."""
        found = [(name, self.medians.get((workload, name, n))) for name in self.contenders]
        return [(name, median) for name, median in found if median is not None]

    def ratio(self, workload, contender, n):
        reference = self.medians.get((workload, self.reference, n))
        return reference / self.medians[workload, contender, n] if reference else None


def bars(report, workload, n):
    """Horizontal bars, one per contender: nanoseconds, and how many times faster than the reference."""
    rows = report.present(workload, n)
    row_height, label_width, value_width = 24, 132, 92
    track = CHART_WIDTH - label_width - value_width
    longest = max(median for _, median in rows)
    parts = []
    for i, (name, median) in enumerate(rows):
        y = i * row_height
        strong = " strong" if name.startswith("chime") else ""
        ratio = report.ratio(workload, name, n)
        shown = f"×{number(ratio)}" if ratio and name != report.reference else ""
        parts.append(
            f'<text class="label{strong}" x="{label_width - 8}" y="{y + 16}" text-anchor="end">{html.escape(name)}</text>'
            f'<rect class="track" x="{label_width}" y="{y + 4}" width="{track}" height="16" rx="3"/>'
            f'<rect x="{label_width}" y="{y + 4}" width="{max(2.0, track * median / longest):.1f}" height="16" rx="3" '
            f'fill="{colour(name)}"/>'
            f'<text class="{strong.strip()}" x="{label_width + track + 50}" y="{y + 16}" text-anchor="end">'
            f"{number(median)}</text>"
            f'<text class="soft{strong}" x="{CHART_WIDTH}" y="{y + 16}" text-anchor="end">{shown}</text>'
        )
    description = f"{workload} with {n} timers: " + ", ".join(f"{name} {number(median)} ns" for name, median in rows)
    return (
        f'<figure><figcaption>N = {size(n)}</figcaption><svg viewBox="0 0 {CHART_WIDTH} {len(rows) * row_height}" '
        f'role="img" aria-label="{html.escape(description)}">{"".join(parts)}</svg></figure>'
    )


class LogAxis:
    """Maps values to positions so that a factor is a distance."""

    def __init__(self, low, high, begin, end):
        self.low, self.high = math.log10(low), math.log10(high)
        self.begin, self.end = begin, end

    def __call__(self, value):
        share = (math.log10(value) - self.low) / max(self.high - self.low, 1e-9)
        return self.begin + share * (self.end - self.begin)

    def powers(self):
        return [10**e for e in range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)]


def growth(report, workload):
    """Cost over N, both axes logarithmic: a flat line is what constant cost looks like."""
    sizes = report.sizes(workload)
    if len(sizes) < 2:
        return ""
    values = [median for (name, _, _), median in report.medians.items() if name == workload]
    height, left, bottom, top = 270, 52, 44, 8
    x = LogAxis(sizes[0], sizes[-1], left + 6, CHART_WIDTH - 10)
    y = LogAxis(10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values))), height - bottom, top)
    parts = []
    for power in y.powers():
        at = y(power)
        parts.append(
            f'<line class="grid" x1="{left}" x2="{CHART_WIDTH}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text class="soft" x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{power:,}</text>'
        )
    for n in x.powers():
        parts.append(
            f'<text class="soft" x="{x(n):.1f}" y="{height - 24}" text-anchor="middle">10'
            f'<tspan dy="-5" font-size="9">{round(math.log10(n))}</tspan></text>'
        )
    parts.append(f'<text class="soft" x="{CHART_WIDTH}" y="{height - 5}" text-anchor="end">pending timers</text>')
    # chime last, so that it lies on top.
    for name in sorted(report.contenders, key=lambda it: it.startswith("chime")):
        points = [(x(n), y(report.medians[workload, name, n])) for n in sizes if (workload, name, n) in report.medians]
        if not points:
            continue
        width = 3.5 if name.startswith("chime") else 1.8
        dash = ' stroke-dasharray="5 3"' if name.startswith("layout") or name.endswith("fresh") else ""
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(
            f'<g stroke="{colour(name)}" fill="none"><title>{html.escape(name)}</title>'
            f'<polyline points="{path}" stroke-width="{width}"{dash} stroke-linejoin="round"/></g>'
        )
        parts.extend(
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{width * 0.9:.1f}" fill="{colour(name)}"/>' for px, py in points
        )
    return (
        f'<figure><figcaption>Growth with N, nanoseconds</figcaption><svg viewBox="0 0 {CHART_WIDTH} {height}" role="img" '
        f'aria-label="{html.escape(workload)}: nanoseconds per operation over the number of pending timers">'
        f'{"".join(parts)}</svg></figure>'
    )


def key(report):
    items = "".join(
        f'<li><span style="background:{colour(name)}"></span>{html.escape(name)}</li>' for name in report.contenders
    )
    return f'<ul class="key">{items}</ul>'


def section(report, workload):
    name = workload["name"]
    sizes = report.sizes(name)
    if not sizes:
        return ""
    # The curve has the sizes in between.
    shown = [n for n in sizes if n in (1_000, 100_000, 1_000_000)] or sizes
    charts = "".join(bars(report, name, n) for n in shown) + growth(report, name)
    return (
        f"<section><h2>{html.escape(name)}</h2>"
        f'<p class="soft">One operation: {html.escape(workload["one_operation"])}. Nanoseconds; shorter is better; '
        f"×N is how many times faster than {html.escape(report.reference)}.</p>"
        f'<div class="charts">{charts}</div></section>'
    )


def numbers_table(report):
    head = "".join(f"<th>{html.escape(name)}</th>" for name in report.contenders)
    body = []
    for workload in report.data["workloads"]:
        for n in report.sizes(workload["name"]):
            cells = []
            for name in report.contenders:
                median = report.medians.get((workload["name"], name, n))
                cells.append(f"<td>{number(median) if median is not None else '–'}</td>")
            body.append(f"<tr><td>{html.escape(workload['name'])}, {size(n)}</td>{''.join(cells)}</tr>")
    return (
        '<section><h2>All medians, in nanoseconds</h2><div class="wide"><table><thead><tr><th>workload, N</th>'
        f'{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div></section>'
    )


def contenders_table(report):
    early = {}
    for row, share in zip(report.data["rows"], report.data["early"]):
        early[row["contender"]] = max(early.get(row["contender"], 0), share)
    rows = "".join(
        f"<tr><td>{html.escape(it['name'])}</td><td>{html.escape(it['version'])}</td>"
        f"<td>{html.escape(it['clock_reads'])}</td><td>{early.get(it['name'], 0):.0%}</td></tr>"
        for it in report.data["contenders"]
    )
    return (
        '<section><h2>Contenders</h2><div class="wide"><table class="text"><thead><tr><th>name</th><th>version</th>'
        f"<th>reads the clock</th><th>fired early, at most</th></tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def page(report):
    data = report.data
    repetitions = sorted({it["repetitions"] for it in data["rows"]})
    partial = (
        "" if data["complete"] else '<p class="warning">The run was cut short; these results are partial.</p>'
    )
    times = " to ".join(str(count) for count in sorted({repetitions[0], repetitions[-1]}))
    median = "comes from a single run" if times == "1" else f"is the median of {times} runs"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>chime: timers compared</title>'
        f"<style>{STYLE}</style></head><body><h1>chime: timers compared</h1>"
        f'<p class="soft">{html.escape(data["date"])} · {html.escape(data["machine"])} · {html.escape(data["compiler"])}</p>'
        f"{partial}"
        f"<p>Every number {median}. Runs of all contenders were interleaved in random order, with the "
        "same seed, sizes and sequence of operations, and each checked its own answer. Time is virtual, so that all fire "
        "the same timers at the same moments; a contender that reads the clock per timer still pays for reading it. "
        "Setting up is not measured. Absolute times differ between machines; the ratios travel better.</p>"
        f"{key(report)}"
        f'{"".join(section(report, workload) for workload in data["workloads"])}'
        f"{numbers_table(report)}{contenders_table(report)}</body></html>\n"
    )


def main(arguments):
    if len(arguments) != 3:
        print("usage: report.py REPORT.json PAGE.html", file=sys.stderr)
        return 2
    with open(arguments[1], encoding="utf-8") as file:
        report = Report(json.load(file))
    if not report.medians:
        print("report.py: there are no results to draw", file=sys.stderr)
        return 1
    with open(arguments[2], "w", encoding="utf-8") as file:
        file.write(page(report))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
