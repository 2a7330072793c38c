#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the chart of the README: chart.py REPORT.json CHART.svg [N]"""

import sys

from measured import colour, is_ours, number, read_report, size

WORKLOADS = {"timeout_churn": "cancel one, arm one", "fire": "arm one, let it fire", "keep_alive": "postpone one"}
CONTENDERS = ["boost.asio", "libuv", "libevent", "libev", "std.multimap", "std.priority_queue", "go", "tokio",
              "chime.timers", "chime.wheel"]

PANEL_WIDTH, PANEL_GAP, LABEL_WIDTH, ROW, TOP = 200, 24, 128, 22, 48

STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1c2127; }
.soft { fill: #5c6670; } .strong { font-weight: 700; } .track { fill: #f1f3f5; }
@media (prefers-color-scheme: dark) { text { fill: #e8ebee; } .soft { fill: #9aa4ae; } .track { fill: #20252a; } }
"""


def panel(shown, medians, workload, left):
    """One workload: a bar for each contender, as long as an operation takes."""
    longest = max(medians[contender] for contender in shown if contender in medians)
    parts = [f'<text class="strong" x="{left}" y="16">{workload}</text>',
             f'<text class="soft" x="{left}" y="34">{WORKLOADS[workload]}</text>']
    for row, contender in enumerate(shown):
        y = TOP + row * ROW
        if contender not in medians:
            parts.append(f'<text class="soft" x="{left}" y="{y + 11}">–</text>')
            continue
        length = max(2, medians[contender] / longest * (PANEL_WIDTH - 96))
        emphasis = ' class="strong"' if is_ours(contender) else ""
        ratio = f"×{number(medians['boost.asio'] / medians[contender])}"
        parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="14" rx="3" fill="{colour(contender)}"/>')
        parts.append(f'<text{emphasis} x="{left + length + 6:.1f}" y="{y + 11}">'
                     f"{number(medians[contender])} ns  {ratio}</text>")
    return parts


def chart(rows, n):
    """Panels side by side, and the contenders' names on the left."""
    # Who did not run, because it is not installed here, gets no empty row.
    ran = {row["contender"] for row in rows if row["workload"] in WORKLOADS and row["n"] == n}
    shown = [contender for contender in CONTENDERS if contender in ran]
    width = LABEL_WIDTH + len(WORKLOADS) * (PANEL_WIDTH + PANEL_GAP)
    height = TOP + len(shown) * ROW + 24
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
             f"<title>Nanoseconds per operation with {n} timers pending</title>", f"<style>{STYLE}</style>"]
    for row, contender in enumerate(shown):
        emphasis = ' class="strong"' if is_ours(contender) else ""
        parts.append(f'<text{emphasis} x="0" y="{TOP + row * ROW + 11}">{contender}</text>')
    for position, workload in enumerate(WORKLOADS):
        medians = {row["contender"]: row["median"] for row in rows if row["workload"] == workload and row["n"] == n}
        if "boost.asio" not in medians:
            raise SystemExit(f"chart.py: no row of boost.asio for {workload} with n = {n}; run that first")
        parts += panel(shown, medians, workload, LABEL_WIDTH + position * (PANEL_WIDTH + PANEL_GAP))
    parts.append(f'<text class="soft" x="0" y="{height - 4}">Medians with {size(n)} timers pending; '
                 f"× is how many times faster than Boost.Asio in the same run. Less is better.</text></svg>")
    return "\n".join(parts) + "\n"


def main(arguments):
    if len(arguments) not in (2, 3):
        raise SystemExit(__doc__)
    rows = read_report(arguments[0])["rows"]
    text = chart(rows, int(arguments[2]) if len(arguments) == 3 else 100_000)
    with open(arguments[1], "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
