#!/usr/bin/env python3
"""instr.py PROGRAM WEFT PEER JSON [PART-OF-NAME] -- instructions of short statements.

Runs PROGRAM (instr.c) under callgrind on both libraries and prints a line a workload: instructions
an operation, all API calls and the driver's loop (about 15) included, and the peer's divided by
ours.  The profiles stay in build/instr/ENGINE, one file a workload: callgrind_annotate reads them.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

# name -> the peer's instructions divided by ours that are wanted at least
GOALS = {"point_in_txn": 1.2, "point_autocommit": 2.0, "point_key3_in_txn": 1.2,
         "point_key3_autocommit": 2.0, "point_index_in_txn": 1.2, "point_index_autocommit": 2.0,
         "insert": 1.1, "update": 1.1, "delete": 1.1, "prepare_point": 0.83,
         "prepare_insert": 0.83, "prepare_five": 0.83}


def count(program, library, folder, part):
    """{workload: (instructions an operation, answer)}"""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    result = subprocess.run(
        ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--compress-strings=no",
         f"--callgrind-out-file={folder}/out", program, library] + part,
        capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"instr.py: {library}: failed\n{result.stdout}{result.stderr}")
    told = dict((line.split()[0], line.split()[1:]) for line in result.stdout.splitlines())
    counted = {}
    for path in glob.glob(f"{folder}/out.*"):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        name = re.search(r"^desc: Trigger: Client Request: (\w+)", text, re.M)
        total = re.search(r"^(?:totals|summary): (\d+)", text, re.M)
        if not name or not total or name.group(1) not in told:
            continue
        times, answer = told[name.group(1)]
        counted[name.group(1)] = (int(total.group(1)) / int(times), answer)
        os.rename(path, f"{folder}/{name.group(1)}")
    missing = set(told) - set(counted)
    if missing:
        sys.exit(f"instr.py: {library}: not counted: {sorted(missing)}")
    return {name: counted[name] for name in told}


def main():
    program, weft, peer, path = sys.argv[1:5]
    folder = os.path.join(os.path.dirname(path) or ".", "instr")
    ours = count(program, weft, f"{folder}/weft", sys.argv[5:])
    theirs = count(program, peer, f"{folder}/sqlite", sys.argv[5:])
    agreed = True
    with open(path, "a", encoding="utf-8") as out:
        for name, (mine, answer) in ours.items():
            other, expected = theirs[name]
            if answer != expected:
                print(f"instr.{name}: DIFFERENT ANSWERS: {answer} and {expected}")
                agreed = False
                continue
            goal = GOALS.get(name, 1.0)
            ratio = other / mine
            print(f"instr.{name}".ljust(30) + f"{mine:10.0f} {other:10.0f} {ratio:7.2f} x  "
                  f"goal {goal:.2f} {'met' if ratio >= goal else '-'}", flush=True)
            json.dump({"name": f"instr.{name}", "weft": round(mine, 1), "peer": round(other, 1),
                       "peer_name": "sqlite", "unit": "instructions", "ratio": round(ratio, 3),
                       "spread": None, "goal": goal, "met": ratio >= goal}, out)
            out.write("\n")
    return 0 if agreed else 1


sys.exit(main())
