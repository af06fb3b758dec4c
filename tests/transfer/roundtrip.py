#!/usr/bin/env python3
"""roundtrip.py -- SQLite files through weft import and weft export come out the same.

Method: generate files of every page size, encoding, vacuum mode and shape (sqlite_files.py); import
each, export it again, and let SQLite compare: `.dump` of both, every row of every table with its
types, the rows of the schema, the header's numbers; `PRAGMA integrity_check` must say the same.
With --dump the text of weft's own .dump goes through weft and through SQLite too, and must make the
same database.
"""
import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sqlite_files  # noqa: E402  pylint: disable=wrong-import-position


class Different(Exception):
    """What differs."""


def run(*command):
    done = subprocess.run(command, capture_output=True, check=False, timeout=600)
    if done.returncode != 0 or done.stderr:
        raise Different(f"{command[:3]}: status {done.returncode}: {done.stderr.decode()[:2000]}")
    return done.stdout


def same(what, a, b):
    if a != b:
        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        raise Different(f"{what}: {a[max(0, at - 60):at + 60]!r}\nbecame {b[max(0, at - 60):at + 60]!r}")


def bits(value):
    """A value that compares equal only to itself: 1 is not 1.0."""
    return (type(value).__name__, repr(value))


def contents(path):
    """Everything SQLite shows of a file."""
    db = sqlite3.connect(path)
    db.text_factory = lambda text: text.decode("latin-1")  # Text as str, byte for byte.
    found = {}
    schema = db.execute("SELECT rowid, type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    found["schema"] = schema
    for pragma in ("user_version", "application_id", "encoding", "page_size", "auto_vacuum"):
        found[pragma] = db.execute(f"PRAGMA {pragma}").fetchall()
    for _, kind, name, _, sql in schema:
        if kind != "table":
            continue
        name = sqlite_files.quote(name.encode("latin-1").decode())
        columns = {row[1].lower() for row in db.execute(f"PRAGMA table_xinfo({name})")}
        free = [a for a in ("rowid", "oid", "_rowid_") if a not in columns]
        keyed = "WITHOUT ROWID" in sql.upper()
        rowid = "" if keyed or not free else f"{free[0]}, "
        rows = db.execute(f"SELECT {rowid}* FROM {name}").fetchall()
        # SQLite writes -0.0 in a column of REAL affinity as 0 and shows 0.0.
        found["rows of " + name] = [[bits(0.0 if v == 0.0 and isinstance(v, float) else v) for v in row]
                                    for row in rows]
    db.close()
    return found


def check_file(weft, source, folder):
    middle, back = os.path.join(folder, "middle.weft"), os.path.join(folder, "back.db")
    files = {name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}
    run(weft, "import", "--quiet", source, middle)
    for name, before in files.items():
        with open(os.path.join(folder, name), "rb") as file:
            if file.read() != before:
                raise Different(f"import changed {name}")
    run(weft, "export", "--quiet", middle, back)
    if sorted(os.listdir(folder)) != sorted(list(files) + ["middle.weft", "back.db"]):
        raise Different(f"left over: {os.listdir(folder)}")
    # Of some sound files SQLite says something else than "ok"; then of both.
    same("integrity_check", *(run("sqlite3", path, "PRAGMA integrity_check") for path in (source, back)))
    same(".dump", run("sqlite3", source, ".dump"), run("sqlite3", back, ".dump"))
    before, after = contents(source), contents(back)
    same("what there is", sorted(before), sorted(after))
    for what, value in before.items():
        same(what, value, after[what])
    same("weft's integrity_check", b"ok\n", run(weft, middle, "PRAGMA integrity_check"))


def user_part(found):
    """What a dump carries: not the places of sqlite_'s tables, not the header; keys in UTF-16 have
    another order than in UTF-8."""
    kept = {what: sorted(rows) for what, rows in found.items() if what.startswith("rows of ")
            and "sqlite_" not in what}
    kept["schema"] = sorted(row[1:] for row in found["schema"] if not row[2].startswith("sqlite_"))
    return kept


def check_dump(weft, source, folder):
    middle, again = os.path.join(folder, "middle.weft"), os.path.join(folder, "again.weft")
    fresh = os.path.join(folder, "fresh.db")
    text = run(weft, middle, ".dump --preserve-rowids")
    # Blobs that are read as text mean something else in UTF-16.
    encoding = b'PRAGMA encoding="' + run("sqlite3", source, "PRAGMA encoding").strip() + b'";\n'
    for program, path in ((weft, again), ("sqlite3", fresh)):
        done = subprocess.run([program, path], input=encoding + text, capture_output=True, check=False, timeout=600)
        if done.returncode != 0 or done.stderr:
            raise Different(f"dump into {program}: {done.stderr.decode()[:500]}")
    same("the dump of the dump", text, run(weft, again, ".dump --preserve-rowids"))
    before, after = user_part(contents(source)), user_part(contents(fresh))
    same("what a dump makes", sorted(before), sorted(after))
    for what, value in before.items():
        same(what + " from the dump", value, after[what])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("--files", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--keep", help="keep a failing file's folder under this name")
    parser.add_argument("--dump", action="store_true", help="try the dumps as well")
    options = parser.parse_args()
    failed = 0
    for seed in range(options.seed, options.seed + options.files):
        with tempfile.TemporaryDirectory() as folder:
            path = sqlite_files.make(folder, seed)
            try:
                check_file(options.weft, path, folder)
                if options.dump:
                    check_dump(options.weft, path, folder)
            except Different as what:
                failed += 1
                print(f"seed {seed}: {what}")
                if options.keep:
                    shutil.copytree(folder, f"{options.keep}-{seed}", dirs_exist_ok=True)
    print(f"{options.files} SQLite files there and back, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
