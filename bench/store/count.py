#!/usr/bin/env python3
"""count.py STORE_BENCH [JSON] [NAME...] -- instructions of the store's face, counted by callgrind.

Counts what the face's function of each work costs, with all that it calls, inside measured(); what
the driver itself does is left out.  Prints a line a row, appends it to JSON (unless that is "-"),
and ends with 1 when a row is above its budget: then somebody has made the store dearer.

A `rep movs` counts as one instruction a byte, so a copy of more than two kilobytes weighs more here
than in time.
"""
import json
import re
import subprocess
import sys
import tempfile

# Transactions small enough that none spills its undo.
# name -> (function of the face, operations, goal or None, budget: what it may cost today)
ROWS = {
    "get": ("store_get", 20000, 700, 640),
    "insert_rising": ("store_put", 20000, 1100, 1510),
    "insert_random": ("store_put", 20000, None, 2780),
    "update": ("store_put", 10000, 1200, 2800),
    "update_grows": ("store_put", 10000, None, 7050),
    "update_commit": ("store_txn_commit", 5000, 1500, 3230),
    "scan": ("store_cursor_fetch", 98000, None, 75),
    "count": ("store_count", 100, None, 165),
}


def inclusive(path, function):
    """Instructions below all calls of `function` by the driver's own functions."""
    names, total, caller, callee, follows = {}, 0, "", "", False
    for line in open(path, encoding="utf-8", errors="replace"):
        found = re.match(r"(c?fn)=\((\d+)\)(?: (.*))?$", line.rstrip())
        if found:
            kind, number, name = found.groups()
            if name:
                names[number] = name
            if kind == "fn":
                caller = names[number]
            else:
                callee = names[number]
        elif line.startswith("calls="):
            follows = True
        elif follows:
            follows = False
            if callee == function and not caller.startswith("store_"):
                total += int(line.split()[-1])
    return total


def collected(bench, name, function, times):
    with tempfile.NamedTemporaryFile(prefix="callgrind.") as out:
        result = subprocess.run(
            ["valgrind", "--tool=callgrind", "--toggle-collect=measured",
             f"--callgrind-out-file={out.name}", bench, "--count", name, str(times)],
            capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"count.py: {name}: callgrind failed\n{result.stderr}")
        return inclusive(out.name, function) / times


def main():
    bench, path = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "-"
    wanted = sys.argv[3:] or list(ROWS)
    above = 0
    for name in wanted:
        function, times, goal, budget = ROWS[name]
        each = collected(bench, name, function, times)
        met = None if goal is None else each <= goal
        above += each > budget
        told = "" if goal is None else f"goal <= {goal} {'met' if met else '-'}"
        over = f" above its budget of {budget}" if each > budget else ""
        print(f"store.{name}_instr".ljust(28) + f" {each:10.1f} {'':21}  instructions {told}{over}",
              flush=True)
        if path != "-":
            with open(path, "a", encoding="utf-8") as out:
                json.dump({"name": f"store.{name}_instr", "weft": round(each, 1), "peer": None,
                           "peer_name": None, "ratio": None, "unit": "instructions",
                           "spread": None, "goal": goal, "met": met}, out)
                out.write("\n")
    sys.exit(above > 0)


main()
