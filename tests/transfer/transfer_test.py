#!/usr/bin/env python3
"""transfer_test.py -- weft import, weft export and weft dump-page as a user meets them.

Method: files made by SQLite's own shell; exit status, messages, what is left in the folder; damaged
files at chosen places; what export is told about pages, text and vacuum.  That contents come through
whole is roundtrip.py's business.
"""
import os
import pty
import random
import signal
import sqlite3
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "server"))
import harness  # noqa: E402  pylint: disable=wrong-import-position
from harness import same  # noqa: E402  pylint: disable=wrong-import-position

ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) " \
       "INSERT INTO t SELECT i, 'row number ' || i, i * 1.5 FROM n;"


def run(*command, text=""):
    done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=120, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def sqlite(path, text):
    code, out, err = run("sqlite3", path, text=text)
    same((code, err), (0, ""))
    return out


def source(t, rows=2000, page=1024):
    path = t.path("app.db")
    sqlite(path, f"PRAGMA page_size={page};CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);"
                 "CREATE TABLE other(x);INSERT INTO other VALUES(1),('two');" + ROWS % rows
                 + "CREATE INDEX tb ON t(b);")
    return path


def beside(path):
    """Names in the folder that belong to a path."""
    folder, name = os.path.split(path)
    return sorted(n for n in os.listdir(folder) if n.startswith(name))


def test_the_message_names_the_command_that_works(t):
    path = source(t)
    code, _, err = run(t.weft, path, "SELECT 1")
    same(code, 1)
    new = path.replace(".db", ".weft")
    same(err.split("run: ", 1)[1], f"weft import {path} {new}\n")
    same(run(t.weft, "import", path, new)[0], 0)
    same(run(t.weft, new, "SELECT count(*), sum(c), max(b) FROM t INDEXED BY tb")[1],
         "2000|3001500.0|row number 999\n")


def test_summary_and_quiet(t):
    path, new = source(t), t.path()
    code, out, err = run(t.weft, "import", path, new)
    same((code, err), (0, ""))
    same(out.split(" in ")[0], f"{new}: 2 tables, 2002 rows, 1 indexes, 0 views, 0 triggers")
    same(run(t.weft, "import", "--quiet", path, t.path()), (0, "", ""))
    code, out, _ = run(t.weft, "export", new, t.path("b.db"))
    same((code, "2 tables, 2002 rows, 1 indexes" in out), (0, True))


def test_a_target_that_exists_is_left_alone(t):
    path, new = source(t), t.path()
    with open(new, "w", encoding="ascii") as file:
        file.write("mine")
    for command in (("import", path, new), ("export", new, path)):
        code, _, err = run(t.weft, *command)
        same((code, "exists already" in err), (1, True))
    with open(new, encoding="ascii") as file:
        same(file.read(), "mine")


def test_what_cannot_be_read_is_refused_and_leaves_nothing(t):
    path, new = t.path("not.db"), t.path()
    with open(path, "w", encoding="ascii") as file:
        file.write("not a database at all, and longer than a header is; " * 4)
    same(run(t.weft, "import", path, new), (1, "", f"weft import: {path} is not a SQLite database\n"))
    same(run(t.weft, "import", path + "x", new)[0], 1)
    same(run(t.weft, "import")[0], 1)
    same(run(t.weft, "import", "--nonsense", path, new)[0], 1)
    same(beside(new), [])
    same(run(t.weft, "export", path, t.path("b.db"))[0], 1)
    code, _, err = run(t.weft, "export", source(t), t.path("b.db"))
    same((code, "is a SQLite database" in err), (1, True))


def leaf_pages(path, page):
    """Numbers of the table leaves, in the file's order."""
    with open(path, "rb") as file:
        data = file.read()
    return [at // page for at in range(page, len(data), page) if data[at] == 13]


def test_damage_is_named_and_salvage_takes_the_rest(t):
    page, rows = 1024, 2000
    path, new = source(t, rows, page), t.path()
    leaves = leaf_pages(path, page)
    with open(path, "r+b") as file:
        for leaf in leaves[len(leaves) // 2:len(leaves) // 2 + 2]:
            file.seek(leaf * page)
            file.write(b"\xff" * 100)
    code, _, err = run(t.weft, "import", path, new)
    lines = err.splitlines()
    same((code, "table t, after " in lines[0], "is no page of a b-tree" in lines[0]), (1, True, True))
    same(f"weft import --salvage {path} {new}" in lines[1], True)
    same(int(lines[1].split()[0]) > 100, True)
    same(beside(new), [])
    code, out, err = run(t.weft, "import", "--salvage", path, new)
    same((code, err.count("is no page of a b-tree")), (2, 2))
    kept = int(run(t.weft, new, "SELECT count(*) FROM t")[1])
    same(rows * 3 // 4 < kept < rows, True)
    same(f"{kept + 2} rows" in out, True)
    same(run(t.weft, new, "PRAGMA integrity_check; SELECT count(*) FROM t WHERE b = 'row number ' || a")[1],
         f"ok\n{kept}\n")


def test_random_damage(t):
    """Whatever the damage: an error that leaves nothing, or a database that is sound."""
    rng = random.Random(11)
    made = t.path("whole.db")
    sqlite(made, "PRAGMA page_size=512;CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);"
                 + ROWS % 300 + "CREATE INDEX tb ON t(b);CREATE TABLE k(a, b, PRIMARY KEY(a)) WITHOUT "
                 "ROWID;INSERT INTO k SELECT a, b || hex(zeroblob(a % 3 * 400)) FROM t;"
                 "CREATE UNIQUE INDEX kb ON k(b);")
    with open(made, "rb") as file:
        whole = file.read()
    seen = set()
    for _ in range(12 if t.slow else 60):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 3, 10])):
            at = rng.randrange(0 if rng.random() < 0.1 else 100, len(data))
            if rng.random() < 0.5:                      # The head and the pointers of a page.
                at = at // 512 * 512 + rng.randrange(20)
            data[at:at + rng.choice([1, 1, 4, 64])] = bytes([rng.randrange(256)])
        path, new = t.path("bad.db"), t.path()
        with open(path, "wb") as file:
            file.write(data)
        for options in ((), ("--salvage",)):
            code, _, err = run(t.weft, "import", *options, path, new)
            seen.add((bool(options), code))
            if code == 1:
                same((beside(new), err.startswith("weft import: ")), ([], True))
                continue
            same((code in ((0, 2) if options else (0,)), "Sanitizer" in err), (True, False))
            same(run(t.weft, new, "PRAGMA integrity_check")[1], "ok\n")
            os.remove(new)
    same((False, 1) in seen and (True, 2) in seen, True)


def test_a_cut_file(t):
    path, new = source(t), t.path()
    os.truncate(path, os.path.getsize(path) * 2 // 3)
    code, _, err = run(t.weft, "import", path, new)
    same((code, "the end is missing" in err, "--salvage" in err, beside(new)), (1, True, True, []))
    same(run(t.weft, "import", "--salvage", path, new)[0], 2)
    same(run(t.weft, new, "SELECT count(*) > 500 FROM t")[1], "1\n")
    awkward = t.path("it's an app.sqlite")
    os.rename(path, awkward)
    quoted = awkward.replace("'", "'\\''")
    same(run(t.weft, awkward, "SELECT 1")[2].split("run: ", 1)[1],
         f"weft import '{quoted}' '{quoted.replace('.sqlite', '.weft')}'\n")


def test_rows_that_break_a_unique_index_are_told(t):
    path, new = t.path("u.db"), t.path()
    sqlite(path, "CREATE TABLE u(a, b);INSERT INTO u VALUES(1, 1), (1, 2);"
                 "PRAGMA writable_schema=on;UPDATE sqlite_schema SET sql = 'CREATE TABLE u(a, b)';"
                 "CREATE INDEX ua ON u(a);"
                 "UPDATE sqlite_schema SET sql = 'CREATE UNIQUE INDEX ua ON u(a)' WHERE name = 'ua';")
    code, _, err = run(t.weft, "import", path, new)
    same((code, "break the unique index ua" in err, beside(new)), (1, True, []))
    code, _, err = run(t.weft, "import", "--salvage", path, new)
    same((code, "1 rows break its unique indexes" in err, "1 rows could not be used" in err),
         (2, True, True))
    same(run(t.weft, new, "SELECT * FROM u; PRAGMA integrity_check")[1], "1|1\nok\n")


def test_salvage_with_several_unique_indexes(t):
    path, new = t.path("u.db"), t.path()
    loose, strict = [], []
    for name, tail in (("r", ""), ("k", " WITHOUT ROWID")):
        loose.append(f"CREATE TABLE {name}(p PRIMARY KEY, a, b){tail};"
                     f"INSERT INTO {name} VALUES(1, 1, 1), (2, 1, 2), (3, 3, 2), (4, 4, 4), (5, 4, 1);"
                     f"CREATE INDEX {name}a ON {name}(a);CREATE INDEX {name}b ON {name}(b, a);"
                     f"CREATE INDEX {name}c ON {name}(b);")
        strict += [f"UPDATE sqlite_schema SET sql = replace(sql, 'CREATE', 'CREATE UNIQUE') "
                   f"WHERE name IN ('{name}a', '{name}c');"]
    sqlite(path, "".join(loose) + "PRAGMA writable_schema=on;" + "".join(strict))
    code, _, err = run(t.weft, "import", "--salvage", path, new)
    same((code, "rows could not be used" in err), (2, True))
    same(run(t.weft, new, "SELECT count(*) = count(DISTINCT a) AND count(*) = count(DISTINCT b), "
             "count(*) FROM r UNION ALL SELECT count(*) = count(DISTINCT a) AND "
             "count(*) = count(DISTINCT b), count(*) FROM k; PRAGMA integrity_check")[1],
         "1|3\n1|3\nok\n")


def test_what_means_nothing_here_is_left_out_by_salvage(t):
    path, new = t.path("c.db"), t.path()
    db = sqlite3.connect(path)
    db.create_collation("mine", lambda a, b: (a > b) - (a < b))
    db.executescript("CREATE TABLE odd(a TEXT COLLATE mine UNIQUE);CREATE INDEX oi ON odd(a);"
                     "CREATE TABLE even(x);CREATE INDEX ei ON even(x COLLATE mine);"
                     "INSERT INTO odd VALUES('q');INSERT INTO even VALUES(2);"
                     "CREATE VIEW v AS SELECT unknown(x) FROM even;")
    db.close()
    code, _, err = run(t.weft, "import", path, new)
    same((code, "under the collation mine of the program" in err, "--salvage" in err),
         (1, True, True))
    code, _, err = run(t.weft, "import", "--salvage", path, new)
    same((code, "odd is left out" in err, "oi is left out" in err), (2, True, True))
    same(run(t.weft, new, "SELECT name FROM sqlite_schema; SELECT x FROM even")[1],
         "even\nei\nv\n2\n")


def test_collations_of_the_program_need_no_program(t):
    path, new = t.path("c.db"), t.path()
    db = sqlite3.connect(path)
    db.create_collation("mine", lambda a, b: (a < b) - (a > b))
    db.executescript("CREATE TABLE odd(a TEXT COLLATE mine);CREATE INDEX oi ON odd(a);"
                     "CREATE INDEX ob ON odd(a COLLATE nocase);"
                     "INSERT INTO odd VALUES('q'),('B'),('a');")
    db.close()
    same(run(t.weft, "import", path, new)[0], 0)
    same(run(t.weft, new, "SELECT a FROM odd ORDER BY a COLLATE nocase")[1], "a\nB\nq\n")
    code, _, err = run(t.weft, new, "SELECT a FROM odd ORDER BY a")
    same((code, "no such collation sequence: mine" in err), (1, True))


def test_virtual_tables_are_refused_by_name(t):
    path, new = t.path("v.db"), t.path()
    sqlite(path, "CREATE VIRTUAL TABLE words USING fts5(w);CREATE TABLE t(a);INSERT INTO t VALUES(5);")
    code, _, err = run(t.weft, "import", path, new)
    same((code, "words is a virtual table" in err, "--skip-virtual" in err), (1, True, True))
    same(run(t.weft, "import", "--skip-virtual", path, new)[0], 0)
    same(run(t.weft, new, "SELECT a FROM t")[1], "5\n")


def test_export_says_what_the_file_is_like(t):
    new = t.path()
    text = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);" \
           "INSERT INTO t(b) VALUES('\u00e4'),('z'),('\U0001f600');CREATE INDEX tb ON t(b);" \
           "CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID;INSERT INTO w VALUES('\u00e4', 1), ('a', 2);" \
           "PRAGMA user_version=9;"
    same(run(t.weft, new, text=text)[0], 0)
    for options, wanted in (
            ((), "4096|UTF-8|0|delete"),
            (("--page-size", "512", "--encoding", "utf16le"), "512|UTF-16le|0|delete"),
            (("--page-size", "65536", "--encoding", "utf16be", "--auto-vacuum", "full"),
             "65536|UTF-16be|1|delete"),
            (("--auto-vacuum", "incremental", "--wal"), "4096|UTF-8|2|wal")):
        back = t.path("b.db")
        same(run(t.weft, "export", "--quiet", *options, new, back), (0, "", ""))
        out = sqlite(back, "PRAGMA page_size;PRAGMA encoding;PRAGMA auto_vacuum;PRAGMA journal_mode;"
                           "PRAGMA integrity_check;PRAGMA user_version;SELECT group_concat(b) FROM t;"
                           "SELECT v FROM w WHERE k = '\u00e4';SELECT a FROM t WHERE b = 'z';")
        same(out.split("\n"), wanted.split("|") + ["ok", "9", "\u00e4,z,\U0001f600", "1", "2", ""])
        sqlite(back, "INSERT INTO t(b) VALUES('more');DELETE FROM w;VACUUM;")
    for bad in (("--page-size", "1000"), ("--page-size",), ("--encoding", "latin1"), ("--auto-vacuum", "x")):
        same(run(t.weft, "export", *bad, new, t.path("b.db"))[0], 1)


def test_a_bar_on_a_terminal(t):
    path = source(t, 3000 if t.slow else 30000)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(t.weft, [t.weft, "import", path, t.path()])
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    same(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
    same((b"\r[" in shown, b"%" in shown, b"2 tables" in shown), (True, True, True))


def test_ctrl_c_ends_an_import_and_leaves_nothing(t):
    path = source(t, 20000 if t.slow else 300000)
    for delay in (0.05, 0.2, 0.4):
        new = t.path()
        work = subprocess.Popen([t.weft, "import", path, new], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        time.sleep(delay)
        work.send_signal(signal.SIGINT)
        _, err = work.communicate(timeout=120)
        if work.returncode == 0:                        # It was faster.
            same(beside(new), [os.path.basename(new)])
        elif work.returncode > 0:
            same((work.returncode, b"interrupted" in err, beside(new)), (1, True, []))
        else:                                           # Before it listened: what is left is swept later.
            same(-work.returncode, signal.SIGINT)


def test_half_a_target_of_an_earlier_run_is_swept(t):
    path, new = source(t), t.path()
    for name in ("-part", "-part-log.00000001", "-part-new"):
        with open(new + name, "wb") as file:
            file.write(b"rubbish" * 1000)
    same(run(t.weft, "import", path, new)[0], 0)
    same(beside(new), [os.path.basename(new)])


def test_a_page_is_told_in_words(t):
    new = t.path()
    same(run(t.weft, new, "CREATE TABLE fruit(name TEXT); INSERT INTO fruit VALUES('papaya')")[0], 0)
    code, out, err = run(t.weft, "dump-page", new)
    same((code, "closed in order" in out, err), (0, True, ""))
    pages, page = "", 1
    while True:
        code, out, err = run(t.weft, "dump-page", new, str(page))
        if code != 0:
            break
        pages, page = pages + out, page + 1
    same((code, out, err), (1, "", f"weft dump-page: there is no page {page}\n"))
    same(("papaya".encode().hex() in pages, "a leaf of tree 1" in pages), (True, True))
    code, out, err = run(t.weft, "dump-page", new, "slot", "0")
    same((code, out.startswith("slot 0") or "in slot 0" in out, err), (0, True, ""))
    for wrong in ((), (new, "0"), (new, "x"), (new, "slot"), (new, "1", "2"), (new, "99999999999")):
        code, out, err = run(t.weft, "dump-page", *wrong)
        same((code, out, err.startswith("usage: weft dump-page")), (1, "", True))
    with open(new + "-foreign", "w", encoding="ascii") as file:
        file.write("x" * 20000)
    code, _, err = run(t.weft, "dump-page", new + "-foreign", "1")
    same((code, "is not a Weft database" in err), (1, True))


if __name__ == "__main__":
    harness.main(globals())
