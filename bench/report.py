#!/usr/bin/env python3
"""report.py JSONL FOLDER -- the page and the plots of what `make bench` has measured.

JSONL has a line a row and run, oldest first.  Of each row the newest is compared: FOLDER/report.md
with a table a group, FOLDER/GROUP.svg with a bar a row (ratio on a logarithmic scale, the line is
the peer, the mark the goal), FOLDER/history.svg with the middle ratio of each group over its runs.
"""
import json
import math
import pathlib
import statistics
import sys
import time
from html import escape

BAR, LABEL, PLOT = 16, 260, 420       # Pixels: height of a row, width of names and of bars.
LEAST, MOST = 0.1, 100.0              # Ratios beyond are drawn at the edge.
INK, GOOD, BAD, GRID = "#222", "#2a7f62", "#b5482e", "#ccc"


def read_rows(path):
    """All complete lines; a line that is not JSON is told and left out."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            row["group"] = row["name"].split(".")[0]
            rows.append(row)
        except (ValueError, KeyError, AttributeError):
            print(f"report: line {number} of {path} is not a row", file=sys.stderr)
    return rows


def place(ratio):
    """Where a ratio lies on the logarithmic scale, 0 to PLOT."""
    ratio = min(max(ratio, LEAST), MOST)
    return PLOT * math.log(ratio / LEAST) / math.log(MOST / LEAST)


def svg(width, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11" fill="{INK}">\n'
            f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, colour, width=1):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"/>')


def comparison(rows):
    """Bars of the ratios of one group."""
    height = 30 + BAR * len(rows) + 10
    parts = []
    for tick in (0.1, 0.5, 1, 2, 5, 10, 100):
        x = LABEL + place(tick)
        parts.append(line(x, 24, x, height - 8, INK if tick == 1 else GRID))
        parts.append(text(x, 18, f"{tick:g}", "middle"))
    for number, row in enumerate(rows):
        y = 30 + BAR * number
        x, one = LABEL + place(row["ratio"]), LABEL + place(1)
        good = row["met"] if row["met"] is not None else row["ratio"] >= 1
        parts.append(text(LABEL - 6, y + 11, row["name"], "end"))
        parts.append(f'<rect x="{min(x, one):.1f}" y="{y + 2}" width="{max(abs(x - one), 1):.1f}" '
                     f'height="{BAR - 5}" fill="{GOOD if good else BAD}"/>')
        if row["goal"]:
            goal = LABEL + place(row["goal"])
            parts.append(line(goal, y, goal, y + BAR - 1, INK, 2))
        parts.append(text(LABEL + PLOT + 8, y + 11, f"{row['ratio']:.2f} x"))
    return svg(LABEL + PLOT + 70, height, parts)


def runs_of(rows):
    """The ratios of one group, run by run: a name that comes again begins a new run."""
    runs, seen = [], set()
    for row in rows:
        key = (row["name"], row.get("device"))
        if not runs or key in seen:
            runs.append([])
            seen = set()
        seen.add(key)
        runs[-1].append(row["ratio"])
    return [statistics.geometric_mean(run) for run in runs]


def history(groups):
    """The middle ratio of each group over its runs, oldest left."""
    colours = ["#2a7f62", "#b5482e", "#3b6ea5", "#8a6d1d", "#6b4c9a", "#444", "#2b9eb3", "#c2185b"]
    height, parts = 240, []

    def up(ratio):
        return 20 + 190 * (1 - place(ratio) / PLOT)
    for tick in (0.1, 0.5, 1, 2, 5, 10, 100):
        parts.append(line(40, up(tick), 560, up(tick), INK if tick == 1 else GRID))
        parts.append(text(34, up(tick) + 4, f"{tick:g}", "end"))
    for number, (group, rows) in enumerate(groups.items()):
        colour = colours[number % len(colours)]
        runs = runs_of(rows)
        step = 500 / max(len(runs) - 1, 1)
        points = [(50 + step * i, up(ratio)) for i, ratio in enumerate(runs)]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        parts.append(f'<text x="575" y="{30 + 16 * number}" fill="{colour}">{escape(group)} '
                     f'({len(runs)} runs)</text>')
    return svg(720, height, parts)


def figure(value):
    return "" if value is None else f"{value:,.3f}" if abs(value) < 1000 else f"{value:,.0f}"


def table(rows):
    out = ["| row | Weft | peer | ratio | spread | goal | unit | device | |", "|---|---:|---:|---:|---|---:|---|---|---|"]
    for row in rows:
        spread = row.get("spread")
        ratio = "" if row["ratio"] is None else f"**{row['ratio']:.2f}**"
        goal = "" if row["goal"] is None else f"{row['goal']:g}" + \
            {True: " met", False: " not met", None: ""}[row["met"]]
        out.append(f"| {row['name']} | {figure(row['weft'])} | {figure(row['peer'])} | {ratio} | "
                   f"{f'{spread[0]:.2f} to {spread[1]:.2f}' if spread else ''} | {goal} | "
                   f"{row['unit']} | {row.get('device') or ''} | {row.get('note') or ''} |")
    return out


def write_page(folder, groups, newest):
    page = ["# What was measured", "",
            f"Made by `make bench-report` on {time.strftime('%Y-%m-%d', time.gmtime())} from "
            "`make bench`'s rows, the newest of each. The ratio says how many times as good Weft is "
            "as the peer; bars to the right of 1 are Weft's, the mark is the goal. `README.md` "
            "beside this page says under which conditions, and where the time goes.", "",
            "![history](history.svg)", ""]
    for group in groups:
        rows = newest[group]
        met = [row["met"] for row in rows if row["met"] is not None]
        page += [f"## {group}", "", f"{sum(met)} of {len(met)} goals met.", ""]
        compared = [row for row in rows if row["ratio"]]
        if compared:
            (folder / f"{group}.svg").write_text(comparison(compared), encoding="utf-8")
            page += [f"![{group}]({group}.svg)", ""]
        page += table(rows) + [""]
    (folder / "report.md").write_text("\n".join(page), encoding="utf-8")


def main():
    source, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if not source.exists():
        sys.exit("report: nothing measured yet: run make bench")
    folder.mkdir(parents=True, exist_ok=True)
    rows = read_rows(source)
    newest, with_ratio = {}, {}
    for row in rows:
        newest.setdefault(row["group"], {})[(row["name"], row.get("device"))] = row
        if row["ratio"]:
            with_ratio.setdefault(row["group"], []).append(row)
    if not rows:
        sys.exit(f"report: no rows in {source}")
    newest = {group: list(found.values()) for group, found in newest.items()}
    (folder / "history.svg").write_text(history(with_ratio), encoding="utf-8")
    write_page(folder, list(newest), newest)
    print(f"report: {sum(len(found) for found in newest.values())} rows in {folder}/report.md")


if __name__ == "__main__":
    main()
