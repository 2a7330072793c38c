#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the report of chime_bench as one HTML page that needs nothing else: report.py REPORT.json PAGE.html"""

import html
import math
import pathlib
import sys

from measured import Report, colour, is_ours, number, size, times, with_unit

CHART_WIDTH = 360  # Units of a chart; a phone shows one per row at about this many pixels.

STYLE = (pathlib.Path(__file__).parent / "report.css").read_text(encoding="utf-8")


def bar_chart(caption, description, rows):
    """Horizontal bars: rows of (name, value, shown value, shown ratio)."""
    row_height, label_width, value_width = 24, 142, 108
    track = CHART_WIDTH - label_width - value_width
    # Who takes very much longer than most would make all others look alike: such a bar is cut, and looks it.
    ordered = sorted(value for _, value, _, _ in rows)
    longest = max(min(ordered[-1], 8 * max(ordered[len(ordered) // 2], 0) or ordered[-1]), 1e-9)
    parts = []
    for i, (name, value, shown, ratio) in enumerate(rows):
        y = i * row_height
        strong = " strong" if is_ours(name) else ""
        length = min(track, max(2.0 if value else 0.0, track * value / longest))
        cut = (f'<path d="M{label_width + track - 16},{y + 20} l5,-16 h5 l-5,16 z" class="cut"/>'
               if value > 1.001 * longest else "")
        parts.append(
            f'<text class="label{strong}" x="{label_width - 8}" y="{y + 16}" text-anchor="end">{html.escape(name)}</text>'
            f'<rect class="track" x="{label_width}" y="{y + 4}" width="{track}" height="16" rx="3"/>'
            f'<rect x="{label_width}" y="{y + 4}" width="{length:.1f}" height="16" rx="3" '
            f'fill="{colour(name)}"/>{cut}'
            f'<text class="{strong.strip()}" x="{label_width + track + 62}" y="{y + 16}" text-anchor="end">{shown}</text>'
            f'<text class="soft{strong}" x="{CHART_WIDTH}" y="{y + 16}" text-anchor="end">{ratio}</text>'
        )
    return (
        f'<figure><figcaption>{caption}</figcaption><svg viewBox="0 0 {CHART_WIDTH} {len(rows) * row_height}" '
        f'role="img" aria-label="{html.escape(description)}">{"".join(parts)}</svg></figure>'
    )


def bars(report, workload, case):
    """One bar per contender: the median, and how many times faster than the reference."""
    unit = report.units[workload]
    rows = []
    for name, median in report.present(workload, case):
        ratio = report.ratio(workload, name, case)
        rows.append((name, median, with_unit(median, unit),
                     times(ratio) if ratio and name != report.reference else ""))
    title = report.title(workload, case)
    described = ", ".join(f"{name} {shown}" for name, _, shown, _ in rows)
    return bar_chart(title, f"{workload} with {title}: {described}", rows)


# What stands beside the time and deserves a chart of its own: the figure, and what it says.
FIGURE_CHARTS = {
    "sleepers": (("peak_bytes", "peak of memory, bytes for each sleeper"), ("processor_s", "processor time, seconds")),
    "memory_under_cancel": (("end_mb", "memory at the end, MB"),),
    "spawn_and_join": (("processor_ns", "processor time of all threads, ns"),),
}


def figure_bars(report, workload, case):
    charts = []
    for figure, meaning in FIGURE_CHARTS.get(workload, ()):
        found = [(name, report.figures.get((workload, name, case), {}).get(figure))
                 for name in report.contenders + report.variants]
        found = [(name, value) for name, value in found if value is not None]
        reference = dict(found).get(report.reference)
        if not found:
            continue
        rows = [(name, value, number(value),
                 times(reference / value) if reference and value > 0 and name != report.reference else "")
                for name, value in found]
        title = f"{report.title(workload, case)}: {meaning}"
        charts.append(bar_chart(title, f"{workload}, {title}", rows))
    return "".join(charts)


def lateness_chart(report, workload, case):
    """The distribution of each contender on a logarithmic axis: from p10 to p90 thick, to p99 thin, p50 as a dot."""
    rows = [(name, report.figures[workload, name, case]) for name in report.contenders
            if (workload, name, case) in report.figures]
    if not rows:
        return ""
    row_height, label_width, top = 26, 124, 20
    height = top + len(rows) * row_height
    x = LogAxis(1, 100_000, label_width + 16, CHART_WIDTH - 8)
    at = lambda us: x(min(max(us, 1), 100_000))
    parts = []
    for power, label in ((1, "1 µs"), (10, ""), (100, "100 µs"), (1_000, ""), (10_000, "10 ms"), (100_000, "")):
        parts.append(f'<line class="grid" x1="{x(power):.1f}" x2="{x(power):.1f}" y1="{top - 4}" y2="{height}"/>'
                     f'<text class="soft" x="{x(power):.1f}" y="12" text-anchor="middle">{label}</text>')
    for i, (name, it) in enumerate(rows):
        y = top + i * row_height + row_height / 2
        strong = " strong" if is_ours(name) else ""
        parts.append(
            f'<text class="label{strong}" x="{label_width - 8}" y="{y + 4}" text-anchor="end">{html.escape(name)}</text>')
        if it["p99_us"] > 0:
            parts.append(f'<line x1="{at(it["p90_us"]):.1f}" x2="{at(it["p99_us"]):.1f}" y1="{y}" y2="{y}" '
                         f'stroke="{colour(name)}" stroke-width="2"/>')
        if it["p90_us"] > 0:
            begin, end = at(it["p10_us"]), at(it["p90_us"])
            parts.append(f'<rect x="{begin:.1f}" y="{y - 6}" width="{max(end - begin, 2):.1f}" height="12" rx="3" '
                         f'fill="{colour(name)}" fill-opacity="0.55"/>')
        if it["p50_us"] > 0:
            parts.append(f'<circle cx="{at(it["p50_us"]):.1f}" cy="{y}" r="4.5" fill="{colour(name)}"/>')
        if it["earliest_us"] < 0:
            parts.append(f'<text class="early" x="{label_width - 2}" y="{y + 4}">◀</text>')
    title = report.title(workload, case)
    described = ", ".join(f"{name} median {it['p50_us']:.0f} µs, p99 {it['p99_us']:.0f} µs" for name, it in rows)
    return (
        f'<figure><figcaption>{title}: how late, p10 to p90, dot p50, line to p99</figcaption>'
        f'<svg viewBox="0 0 {CHART_WIDTH} {height}" role="img" '
        f'aria-label="{html.escape(described)}">{"".join(parts)}</svg></figure>'
    )


def axis_time(ns):
    """A power of ten of nanoseconds, in as few characters as can be."""
    for divisor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= divisor:
            return f"{ns / divisor:.0f} {unit}"
    return f"{ns:.0f} ns"


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


def curve(name, points):
    """A contender's line and its dots; chime's is the thick one."""
    width = 3.5 if name.startswith("chime") else 1.8
    dash = ' stroke-dasharray="5 3"' if name.startswith("layout") or name.endswith((".fresh", ".ahead")) else ""
    path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
    dots = "".join(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{width * 0.9:.1f}" fill="{colour(name)}"/>' for px, py in points)
    return (
        f'<g stroke="{colour(name)}" fill="none"><title>{html.escape(name)}</title>'
        f'<polyline points="{path}" stroke-width="{width}"{dash} stroke-linejoin="round"/></g>{dots}'
    )


def curves(report, caption, description, positions, position_name, x_label, value_of, value_name="{:,}".format):
    """Values over positions, both axes logarithmic. value_of(contender, position) may be None."""
    values = {
        (name, at): value
        for name in report.contenders
        for at in positions
        if (value := value_of(name, at)) is not None and value > 0
    }
    if len(positions) < 2 or not values:
        return ""
    height, left, bottom, top = 270, 52, 44, 8
    x = LogAxis(positions[0], positions[-1], left + 6, CHART_WIDTH - 10)
    lowest, highest = min(values.values()), max(values.values())
    y = LogAxis(10 ** math.floor(math.log10(lowest)), 10 ** math.ceil(math.log10(highest)), height - bottom, top)
    parts = []
    for power in y.powers():
        at = y(power)
        parts.append(
            f'<line class="grid" x1="{left}" x2="{CHART_WIDTH}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text class="soft" x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{value_name(power)}</text>'
        )
    for at in positions:
        if label := position_name(at):
            parts.append(f'<text class="soft" x="{x(at):.1f}" y="{height - 24}" text-anchor="middle">{label}</text>')
    parts.append(f'<text class="soft" x="{CHART_WIDTH}" y="{height - 5}" text-anchor="end">{x_label}</text>')
    # chime last, so that it lies on top.
    for name in sorted(report.contenders, key=lambda it: it.startswith("chime")):
        points = [(x(at), y(values[name, at])) for at in positions if (name, at) in values]
        if points:
            parts.append(curve(name, points))
    return (
        f'<figure><figcaption>{caption}</figcaption><svg viewBox="0 0 {CHART_WIDTH} {height}" role="img" '
        f'aria-label="{html.escape(description)}">{"".join(parts)}</svg></figure>'
    )


def growth(report, workload):
    """Cost over N: a flat line is what constant cost looks like."""
    def power_name(n):
        exponent = round(math.log10(n))
        return f'10<tspan dy="-5" font-size="9">{exponent}</tspan>' if n == 10**exponent else ""

    if report.units[workload] != "ns":
        return ""
    sizes = [n for n, _ in report.cases(workload)]
    return curves(
        report, "Growth with N", f"{workload}: nanoseconds per operation over the number of pending timers",
        sizes, power_name, "pending timers", lambda name, n: report.medians.get((workload, name, (n, 1))),
        axis_time,
    )


def scaling(report, workload):
    """What all threads do together, over their number: a chart for each N."""
    def rate(name, n, threads):
        median = report.medians.get((workload, name, (n, threads)))
        return 1e3 / median if median else None

    charts = []
    for n in sorted({n for n, _ in report.cases(workload)}):
        threads = sorted({count for size_of_case, count in report.cases(workload) if size_of_case == n})
        charts.append(curves(
            report, f"N = {size(n)}, millions a second, all threads together",
            f"{workload}: millions of operations a second over the number of threads, with N = {n}",
            threads, str, "threads", lambda name, count, n=n: rate(name, n, count),
        ))
    return "".join(charts)


def key(report):
    items = "".join(
        f'<li><span style="background:{colour(name)}"></span>{html.escape(name)}</li>' for name in report.contenders
    )
    return f'<ul class="key">{items}</ul>'


def figures_table(report, workload):
    """What was measured beside the time."""
    rows = [row for row in report.data["rows"] if row["workload"] == workload and row.get("figures")]
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row["figures"]))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = []
    for row in rows:
        values = [row["figures"].get(name) for name in names]
        cells = "".join(f"<td>{'–' if value is None else f'{value:,.3g}' if abs(value) < 1000 else f'{value:,.0f}'}</td>"
                        for value in values)
        title = report.title(workload, (row["n"], row["threads"]))
        body.append(f"<tr><td>{html.escape(row['contender'])}, {title}</td>{cells}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th>beside the time</th>{head}</tr></thead>'
        f'<tbody>{"".join(body)}</tbody></table></div>'
    )


def section(report, workload):
    name = workload["name"]
    cases = report.cases(name)
    if not cases:
        return ""
    # The curves have what is in between.
    shown = [case for case in cases if case[0] in (1_000, 100_000, 1_000_000) and case[1] <= 2] or cases
    if name == "lateness":
        charts = "".join(lateness_chart(report, name, case) for case in cases)
        charts += "".join(bars(report, name, case) for case in cases)
        meaning = "An arrow at the left: some were early. "
    else:
        charts = "".join(bars(report, name, case) + figure_bars(report, name, case) for case in shown)
        charts += scaling(report, name) if report.is_threaded(name) else growth(report, name)
        meaning = ""
    return (
        f'<section id="{name}"><h2>{html.escape(name)}</h2>'
        f'<p class="soft">What is shown: {html.escape(workload["one_operation"])}. {meaning}Shorter is better; '
        f"×N is how many times faster than {html.escape(report.reference)}.</p>"
        f'<div class="charts">{charts}</div>{figures_table(report, name)}</section>'
    )


def summary(report):
    """The first thing to look at: chime and the best of the others, row by row."""
    rows = []
    for name, case, ours, other in report.compared():
        unit = report.units[name]
        reference = report.medians.get((name, report.reference, case))
        ratio = report.ratio(name, ours[0], case)
        better = ours[1] <= other[1]
        rows.append(
            f'<tr><td><a href="#{name}">{html.escape(name)}</a>, {report.title(name, case)}</td>'
            f'<td class="reference">{with_unit(reference, unit) if reference is not None else "–"}</td>'
            f'<td class="other">{html.escape(other[0])} {with_unit(other[1], unit)}</td>'
            f'<td class="{"better" if better else "worse"}">{with_unit(ours[1], unit)}</td>'
            f'<td class="ours">{html.escape(ours[0].removeprefix("chime."))}</td>'
            f"<td>{times(ratio) if ratio else '–'}</td></tr>"
        )
    return (
        '<section><h2>At a glance</h2><div class="wide"><table class="glance"><thead><tr><th>workload</th>'
        f'<th class="reference">{html.escape(report.reference)}</th><th class="other">best of the others</th><th>chime</th><th class="ours"></th>'
        "<th>ratio</th></tr></thead>"
        f'<tbody>{"".join(rows)}</tbody></table></div></section>'
    )


def numbers_table(report):
    head = "".join(f"<th>{html.escape(name)}</th>" for name in report.contenders)
    body = []
    for workload in report.data["workloads"]:
        name = workload["name"]
        for case in report.cases(name):
            medians = [report.medians.get((name, contender, case)) for contender in report.contenders]
            if not any(medians):
                continue
            cells = "".join(f"<td>{number(median) if median is not None else '–'}</td>" for median in medians)
            unit = "" if workload.get("unit", "ns") == "ns" else f", {html.escape(workload['unit'])}"
            body.append(f"<tr><td>{html.escape(name)}, {report.title(name, case)}{unit}</td>{cells}</tr>")
    return (
        '<section><h2>All medians, in nanoseconds unless a row says otherwise</h2><div class="wide"><table><thead><tr><th>workload</th>'
        f'{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div></section>'
    )


def contenders_table(report):
    rows = "".join(
        f"<tr><td>{html.escape(it['name'])}</td><td>{html.escape(it['version'])}</td>"
        f"<td>{html.escape(it['clock_reads'])}</td><td>{report.early.get(it['name'], 0):.0%}</td></tr>"
        for it in report.data["contenders"] if it["name"] in report.contenders
    )
    return (
        '<section><h2>Contenders</h2><div class="wide"><table class="text"><thead><tr><th>name</th><th>version</th>'
        f"<th>reads the clock</th><th>fired early, at most</th></tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def page(report):
    data = report.data
    remarks = "".join(f'<p class="warning">{html.escape(remark)}</p>' for remark in report.remarks())
    count = report.repetitions()
    median = "comes from a single run" if count == "1" else f"is the median of {count} runs"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>chime: timers compared</title>'
        f"<style>{STYLE}</style></head><body><h1>chime: timers compared</h1>"
        f'<p class="soft">{html.escape(data["date"])} · {html.escape(data["machine"])} · {html.escape(data["compiler"])}</p>'
        f"{remarks}"
        f"<p>Every number {median}. Runs of all contenders were interleaved in random order, with the "
        "same seed, sizes and sequence of operations, and each checked its own answer. With a single thread time is "
        "virtual, so that all fire the same timers at the same moments; a contender that reads the clock per timer still "
        "pays for reading it. Go and tokio are programs of their own and live in real time. Where there are threads, or something really sleeps, time is real and wall time is shown. "
        "Setting up is not measured. Names that end in .ahead: a program that has a batch of events at hand and fetches what the next "
        "ones need, as far as the contender lets it. Absolute times differ between machines; the ratios travel better.</p>"
        f"{summary(report)}{key(report)}"
        f'{"".join(section(report, workload) for workload in data["workloads"])}'
        f"{numbers_table(report)}{contenders_table(report)}</body></html>\n"
    )


def main(arguments):
    if len(arguments) != 3:
        print("usage: report.py REPORT.json PAGE.html", file=sys.stderr)
        return 2
    report = Report.read(arguments[1])
    if not report.medians:
        print("report.py: there are no results to draw", file=sys.stderr)
        return 1
    with open(arguments[2], "w", encoding="utf-8") as file:
        file.write(page(report))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
