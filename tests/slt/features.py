#!/usr/bin/env python3
"""features.py --runner SLT --lib LIBRARY [--engine NAME] -- run tests/sql/*.test, in memory and on a file; TAP."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "sql"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--engine", default="sqlite", help="for onlyif and skipif")
    options = parser.parse_args()
    files = sorted(FOLDER.glob("**/*.test"))
    print(f"1..{2 * len(files)}")
    number = bad = 0
    with tempfile.TemporaryDirectory(prefix="weft-sql-") as scratch:
        for path in files:
            for where in (":memory:", f"{scratch}/test.db"):
                number += 1
                done = subprocess.run([options.runner, "--db", where, "--lib", options.lib,
                                       "--engine", options.engine, str(path)], capture_output=True, text=True, errors="replace",
                                      check=False, stdin=subprocess.DEVNULL, timeout=110)
                bad += done.returncode != 0
                name = path.relative_to(FOLDER).with_suffix("")
                print(f"{'not ok' if done.returncode else 'ok'} {number} - {name} "
                      f"({'memory' if where == ':memory:' else 'file'})", flush=True)
                if done.returncode:
                    for line in (done.stdout + done.stderr).splitlines():
                        print(f"# {line}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
