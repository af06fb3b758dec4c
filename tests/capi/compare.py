#!/usr/bin/env python3
"""Run a program and compare what it prints with a file: compare.py PROGRAM EXPECTED."""
import difflib
import pathlib
import subprocess
import sys


def main():
    program, expected = sys.argv[1:3]
    done = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=False)
    wanted = pathlib.Path(expected).read_text().splitlines()
    found = done.stdout.splitlines()
    diff = list(difflib.unified_diff(wanted, found, "expected", "found", lineterm=""))
    print("\n".join(diff))
    return 1 if diff or done.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
