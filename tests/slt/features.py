#!/usr/bin/env python3
"""features.py --runner SLT --lib LIBRARY [--engine NAME] [--forced] -- run tests/sql/*.test, in memory and on a file; TAP."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "sql"

# Settings of weft that must change no result, and the word for each.
FORCED = [("want 1", "PRAGMA weft_batch_rows = 1"),
          ("want 2", "PRAGMA weft_batch_rows = 2"),
          ("want 3", "PRAGMA weft_batch_rows = 3"),
          ("want 2048", "PRAGMA weft_batch_rows = 2048"),
          ("trips", "PRAGMA weft_trip_every = 1"),
          ("spilling", "PRAGMA weft_memory_budget = 200"),
          ("hash", "PRAGMA weft_plans = hash"),
          ("loop", "PRAGMA weft_plans = loop"),
          ("as written", "PRAGMA weft_plans = as_written"),
          ("spilling hash", "PRAGMA weft_memory_budget = 200; PRAGMA weft_plans = hash")]

# Joins have another outer table then, and these queries ask for no order.
EXCUSED = {("reverse", "hash"), ("reverse", "spilling hash")}
# Long files, which set their own budgets, run under these alone.
LONG = {"spilling": ("hash",)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--engine", default="sqlite", help="for onlyif and skipif")
    parser.add_argument("--forced", action="store_true",
                        help="instead: in memory, under each setting of weft that must change no result")
    options = parser.parse_args()
    files = sorted(FOLDER.glob("**/*.test"))
    wheres = [(name, before) for name, before in FORCED] if options.forced else [("memory", ""), ("file", "")]
    print(f"1..{len(wheres) * len(files)}")
    number = bad = 0
    with tempfile.TemporaryDirectory(prefix="weft-sql-") as scratch:
        for path in files:
            for where, before in wheres:
                name = path.relative_to(FOLDER).with_suffix("")
                number += 1
                excused = (str(name), where) in EXCUSED
                if options.forced and (excused or where not in LONG.get(str(name), (where,))):
                    why = "orders that nobody promises" if excused else "long"
                    print(f"ok {number} - {name} ({where}) # SKIP {why}")
                    continue
                database = f"{scratch}/test.db" if where == "file" else ":memory:"
                command = [options.runner, "--db", database, "--lib", options.lib, "--engine", options.engine]
                if before:
                    command += ["--before", before]
                done = subprocess.run(command + [str(path)], capture_output=True, text=True, errors="replace",
                                      check=False, stdin=subprocess.DEVNULL, timeout=110)
                bad += done.returncode != 0
                print(f"{'not ok' if done.returncode else 'ok'} {number} - {name} ({where})", flush=True)
                if done.returncode:
                    for line in (done.stdout + done.stderr).splitlines():
                        print(f"# {line}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
