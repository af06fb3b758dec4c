#!/usr/bin/env python3
"""count.py RT_BENCH JSON -- instructions of the runtime's primitives, counted by callgrind.

Each piece of work runs twice, with other repetitions; the difference is free of start and end.
Prints a line a row and appends it to JSON.
"""
import json
import re
import subprocess
import sys

# name -> limit, or None where no goal was set
ROWS = {"switch": 60, "mutex": None, "fiber_life": None, "handoff": None}
FEW, MANY = 1000, 11000


def collected(bench, name, times):
    result = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", bench, "--count", name,
         str(times)], capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode != 0 or not found:
        sys.exit(f"count.py: {name}: callgrind failed\n{result.stderr}")
    return int(found.group(1))


def main():
    bench, path = sys.argv[1:]
    with open(path, "a", encoding="utf-8") as out:
        for name, goal in ROWS.items():
            each = (collected(bench, name, MANY) - collected(bench, name, FEW)) / (MANY - FEW)
            met = None if goal is None else each <= goal
            told = "" if goal is None else f"goal <= {goal} {'met' if met else '-'}"
            print(f"rt.{name}_instr".ljust(28) + f" {each:10.1f} {'':21}  instructions {told}",
                  flush=True)
            json.dump({"name": f"rt.{name}_instr", "weft": round(each, 1), "peer": None,
                       "peer_name": None, "ratio": None, "unit": "instructions",
                       "spread": None, "goal": goal, "met": met}, out)
            out.write("\n")


main()
