#!/usr/bin/env python3
"""golden_test.py -- scripted sessions print what SQLite's own shell prints, byte for byte.

Method: every golden/*.sql goes through SQLite's shell and through weft, each in a fresh folder;
standard output, standard error and exit status must be equal.  Where weft differs on purpose the line
is listed below with its reason, and the difference must be exactly that.
"""
import difflib
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "server"))
import harness  # noqa: E402  pylint: disable=wrong-import-position

GOLDEN = os.path.join(HERE, "golden")
# Output that differs on purpose: (pattern in both outputs, what stands for it).
ALIKE = []


def session(program, script, folder):
    os.mkdir(folder)
    env = dict(os.environ, HOME=folder)
    done = subprocess.run([program], input=script, capture_output=True, cwd=folder, env=env,
                          timeout=120, check=False)
    out = done.stdout.replace(folder.encode(), b"FOLDER")
    err = done.stderr.replace(folder.encode(), b"FOLDER")
    for pattern, text in ALIKE:
        out, err = re.sub(pattern, text, out), re.sub(pattern, text, err)
    return out, err, done.returncode


def compare(t, name, sqlite):
    with open(os.path.join(GOLDEN, name), "rb") as file:
        script = file.read()
    ours = session(os.path.abspath(t.weft), script, t.path("weft"))
    theirs = session(sqlite, script, t.path("sqlite"))
    report = []
    for what, a, b in (("output", theirs[0], ours[0]), ("errors", theirs[1], ours[1])):
        if a != b:
            lines = difflib.unified_diff(a.decode(errors="replace").split("\n"),
                                         b.decode(errors="replace").split("\n"),
                                         "sqlite3 " + what, "weft " + what, lineterm="", n=1)
            report.append("\n".join(lines))
    if theirs[2] != ours[2]:
        report.append(f"status: sqlite3 {theirs[2]}, weft {ours[2]}")
    if report:
        raise AssertionError("\n".join(report))


def make(name, sqlite):
    return lambda t: compare(t, name, sqlite)


if __name__ == "__main__":
    SHELL = shutil.which("sqlite3")
    TESTS = {f"test_{name[:-4]}": make(name, SHELL) for name in sorted(os.listdir(GOLDEN))
             if name.endswith(".sql")}
    harness.main(TESTS if SHELL else {})
