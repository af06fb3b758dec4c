#!/usr/bin/env python3
"""What sqlite3_serialize gives is a database to SQLite, and what SQLite wrote can be taken:
image.py PROGRAM.  SQLite's shell is the judge: .dump and integrity_check.  Skipped without it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROWS = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i<%d) "
SCRIPTS = {
    "empty": "PRAGMA user_version=3;",
    "one": "CREATE TABLE t(a); INSERT INTO t VALUES(1),(NULL),('x'),(x'00ff'),(0.1),(-9e99);",
    "all": """
CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT COLLATE NOCASE, c REAL, d DEFAULT 'd');
CREATE UNIQUE INDEX ti ON t(b DESC, c); CREATE INDEX tx ON t(abs(c)) WHERE c>3;
CREATE TABLE w(k TEXT, n, g AS (n*2) STORED, PRIMARY KEY(k, n)) WITHOUT ROWID;
CREATE VIEW v(x) AS SELECT a FROM t;
CREATE TRIGGER tr AFTER DELETE ON t BEGIN INSERT INTO w VALUES('gone', old.a); END;
""" + ROWS % 3000 + """INSERT INTO t(b,c) SELECT 'name ' || i, i/8 FROM r;
INSERT INTO t(b, c) VALUES('long', 5), (CAST(zeroblob(20000) AS BLOB), 6);
INSERT INTO w(k,n) SELECT b, a FROM t WHERE a%7=0; DELETE FROM t WHERE a%11=0;
ALTER TABLE t ADD COLUMN e DEFAULT 12; PRAGMA application_id=77;""",
}
# Before the script, in SQLite's own file.
FORMS = ["", "PRAGMA page_size=512;", "PRAGMA encoding='UTF-16le';",
         "PRAGMA page_size=65536; PRAGMA auto_vacuum=1;", "PRAGMA journal_mode=wal;"]
LOOK = "PRAGMA integrity_check; PRAGMA user_version; PRAGMA application_id;"


def sqlite(path, *commands):
    # Not on the library under test.
    env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run(["sqlite3", path, *commands], stdout=subprocess.PIPE, env=env, check=True)
    return done.stdout.decode()


def same(wanted, found, what):
    if sqlite(wanted, LOOK, ".dump") == sqlite(found, LOOK, ".dump"):
        return 0
    print(f"{what}: the dumps differ")
    return 1


def main():
    program = sys.argv[1]
    if shutil.which("sqlite3") is None:
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        for name, script in SCRIPTS.items():
            (at / "script.sql").write_text(script)
            for number, form in enumerate(FORMS):
                theirs = at / f"{name}{number}.db"
                sqlite(theirs, form + script)
                taken = at / f"{name}{number}.taken"
                subprocess.run([program, theirs, taken], check=True)
                wrong += same(theirs, taken, f"{name}, {form or 'plain'}")
            ours, again = at / f"{name}.ours", at / f"{name}.again"
            subprocess.run([program, at / "script.sql", ours], check=True)
            subprocess.run([program, ours, again], check=True)
            wrong += same(at / f"{name}0.db", ours, f"{name}, ours")
            wrong += same(ours, again, f"{name}, ours again")
            sqlite(ours, "CREATE TABLE more(a); INSERT INTO more VALUES(1);")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
