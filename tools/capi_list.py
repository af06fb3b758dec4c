#!/usr/bin/env python3
"""capi_list.py [--check] -- docs/capi.md: every function of the C API and what it does here.

Read are the names that libsqlite3.so.0 exports (src/capi/names.txt), the sources that define them,
and src/capi/answers.txt, which says of each function that answers with a constant why.  With
--check nothing is written: status 1 if docs/capi.md is not what would be written, or if a name is
defined nowhere, or an answer is for no name.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CAPI = ROOT / "src" / "capi"
OUTPUT = ROOT / "docs" / "capi.md"

HEAD = """# The C API by function

Made by `tools/capi_list.py` from `src/capi`; do not edit. {total} functions are exported by
`libsqlite3.so.0`: {done} do their work, {answered} answer as is said, for the reason given.
What the working ones do otherwise than SQLite's stands in `compatibility.md`.

| function | here | source |
|----------|------|--------|
"""


def definitions():
    """Name -> file that defines it."""
    found = {}
    for path in sorted(CAPI.glob("*.c")):
        for match in re.finditer(r"^(sqlite3(?:session)?_\w+)\(", path.read_text(), re.M):
            found[match.group(1)] = path.name
    return found


def answers():
    """Name -> what it answers and why."""
    found = {}
    for line in (CAPI / "answers.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, why = line.split(None, 1)
            found[name if name.startswith("sqlite3") else "sqlite3_" + name] = why.strip()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    names = (CAPI / "names.txt").read_text().split()
    defined, constant = definitions(), answers()
    wrong = [f"{name}: exported, defined nowhere" for name in names if name not in defined]
    wrong += [f"{name}: an answer for no function" for name in constant if name not in names]
    lines = [f"| `{name}` | {constant.get(name, 'works')} | `{defined.get(name, '?')}` |"
             for name in names]
    done = len(names) - len([name for name in names if name in constant])
    text = HEAD.format(total=len(names), done=done, answered=len(names) - done)
    text += "\n".join(lines) + "\n"
    if options.check:
        if not OUTPUT.exists() or OUTPUT.read_text() != text:
            wrong.append("docs/capi.md is out of date: run tools/capi_list.py")
    else:
        OUTPUT.write_text(text)
    print("\n".join(wrong + [f"capi list: {len(names)} functions, {len(wrong)} findings"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
