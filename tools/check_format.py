#!/usr/bin/env python3
"""check_format.py -- every C file is as clang-format leaves it.  Lists the others; status 1."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.c", "*.h"], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in names if (ROOT / name).is_file()]
    if not names:
        return 0
    run = subprocess.run(["clang-format", "--dry-run", *names], cwd=ROOT, capture_output=True,
                         text=True, check=False)
    bad = sorted(set(re.findall(r"^([^:\s]+):\d+:\d+: warning: code should be clang-formatted",
                                run.stderr, re.M)))
    for name in bad:
        print(f"{name}: not formatted (make fmt)")
    print(f"format: {len(names)} files, {len(bad)} to reformat")
    return 1 if bad or run.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
