#!/usr/bin/env python3
"""shell_test.py -- the weft shell in batch mode, against a file and against a weftd.

Method: scripts with known output, run once on a database file and once through a server: the output
must be the same.  Where SQLite's own shell is on the machine, the output of every mode is compared
with what it prints.
"""
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "server"))
import harness  # noqa: E402  pylint: disable=wrong-import-position
from harness import same  # noqa: E402  pylint: disable=wrong-import-position
from quack import Server  # noqa: E402  pylint: disable=wrong-import-position

TABLE = """CREATE TABLE t(a INTEGER PRIMARY KEY, name TEXT, w REAL, b BLOB);
INSERT INTO t VALUES(1,'x',1.5,x'4142'),(22,'long "name", it''s',-2.0,NULL),(3,'\u00e4 two',7.25,x'');
"""
MODES = "list column box table markdown csv json line quote tabs".split()


def weft(t, *arguments, text="", env=None):
    done = subprocess.run([t.weft, *arguments], input=text.encode(), capture_output=True,
                          timeout=120, check=False, env=dict(os.environ, **(env or {})))
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def both(t, text, status=0):
    """Output on a file; the same through a server, which must agree."""
    alone = weft(t, t.path(), text=text)
    same(alone[0], status)
    with Server(t.weftd, t.path()) as server:
        remote = weft(t, "--connect", server.address, text=text)
    same(remote, alone)
    return alone[1], alone[2]


def test_select(t):
    same(both(t, TABLE + "SELECT a, name, w FROM t;")[0],
         '1|x|1.5\n3|\u00e4 two|7.25\n22|long "name", it\'s|-2.0\n')


def test_statements_over_lines(t):
    text = """-- a comment; with a semicolon
CREATE TABLE t(a
  , b /* ; */
);
INSERT INTO t VALUES(';', "a;b"
) ;INSERT INTO t VALUES('x''
;', 2);
SELECT count(*) FROM t
;
SELECT 'no semicolon at the end'"""
    text = text.replace('"a;b"', "'a;b'")
    same(both(t, text)[0], "2\nno semicolon at the end\n")


def test_modes_as_sqlite_prints_them(t):
    sqlite = shutil.which("sqlite3")
    if sqlite is None:
        return
    queries = ["SELECT a, name, w FROM t ORDER BY a;", "SELECT a FROM t WHERE a > 99;",
               "SELECT NULL AS n, '' AS e, 'y' AS \"a long name\";", "SELECT 1;"]
    for mode in MODES + ["insert t"]:
        for headers in ("", ".headers on\n", ".headers off\n"):
            text = TABLE + f".mode {mode}\n" + headers + "\n".join(queries) + "\n"
            wanted = subprocess.run([sqlite], input=text.encode(), capture_output=True, check=True)
            code, out, err = weft(t, t.path(), text=text)
            same((code, err), (0, ""))
            if out != wanted.stdout.decode():
                raise AssertionError(f"{mode} {headers!r}\n{out}\n-- sqlite3:\n"
                                     + wanted.stdout.decode())


def test_errors_and_status(t):
    text = TABLE + "SELEC 1;\nINSERT INTO t(a) VALUES(1);\nSELECT nope FROM t;\nSELECT 5;\n"
    out, err = both(t, text, status=1)
    same(out, "5\n")
    lines = err.splitlines()
    same(lines[0], 'Parse error near line 3: near "SELEC": syntax error')
    same(lines[1:3], ["  SELEC 1;", "  ^--- error here"])
    same("Runtime error near line 4: UNIQUE constraint failed: t.a (19)" in lines, True)
    same("Parse error near line 5: no such column: nope" in lines, True)
    same(weft(t, "--bail", t.path(), text=text)[1], "")
    same(weft(t, t.path(), "SELECT 1; SELECT 2")[:2], (0, "1\n2\n"))
    same(weft(t, t.path(), "SELECT x")[0], 1)
    same(weft(t, "--nope")[0], 1)
    same(weft(t, text=".exit 7\nSELECT 1;\n")[:2], (7, ""))
    same(weft(t, os.path.join(t.folder, "no", "such", "folder"), "SELECT 1")[0], 1)


def test_commands(t):
    out, err = both(t, TABLE + """CREATE INDEX ti ON t(name);
CREATE TABLE another(x);
.tables
.tables an%
.indexes
.indexes t
.schema another
.print hello   "a  b" 'c'
.mode
.nullvalue NIL
SELECT NULL;
.separator ; \\n
SELECT 1, 2;
""")
    same(err, "")
    same(out.splitlines(), ["another  t      ", "another", "ti", "ti", "CREATE TABLE another(x);",
                            "hello a  b c", "current output mode: list", "NIL", "1;2"])


def test_long_lines_are_not_cut(t):
    name = "p" * 5000
    text = f'CREATE TABLE "{name}"(a PRIMARY KEY);\nCREATE TABLE c(x REFERENCES "{name}"(a));\n'
    same(weft(t, t.path(), text=text + ".lint fkey-indexes\n"),
         (0, f"CREATE INDEX 'c_x' ON 'c'('x'); --> {name}(a)\n", ""))
    for text in (f"SELECT {name};\n", f"CREATE TABLE t(x);SELECT 1 FROM t AS {name} WHERE {name}.y;\n", f"DROP TABLE {name};\n",
                 f"CREATE TABLE t(x);CREATE TRIGGER r BEFORE INSERT ON t BEGIN SELECT raise(ABORT, '{name}'); END;\n"
                 "INSERT INTO t VALUES(1);\n"):
        same(name in weft(t, t.path(), text=text)[2], True)


def test_parameters(t):
    out, err = both(t, ".param set :n 41\n.param set @t text\n.param set $b X'4142'\n"
                       "SELECT :n + 1, @t, $b, ':n', typeof(:n);\n.param list\n.param unset :n\n"
                       "SELECT :n IS NULL;\n.param clear\nSELECT @t IS NULL;\n")
    same(err, "")
    same(out.splitlines()[0], "42|text|AB|:n|integer")
    same(out.splitlines()[-2:], ["1", "1"])


def test_import(t):
    path = os.path.join(t.folder, "in.csv")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write('id,name\r\n1,plain\r\n2,"with ""quotes"", comma\nand line"\r\n3,\r\n4,\u00e4\n')
    script = (f".mode csv\n.import {path} fresh\n.import --skip 1 {path} typed\n.mode list\n"
              "SELECT typeof(id), id, name FROM fresh;\nSELECT typeof(id), name FROM typed "
              "WHERE id = 4;\n")
    out, err = both(t, "CREATE TABLE typed(id INTEGER PRIMARY KEY, name TEXT);\n" + script)
    same(err, "")
    same(out, 'text|1|plain\ntext|2|with "quotes", comma\nand line\ntext|3|\ntext|4|\u00e4\n'
              "integer|\u00e4\n")
    code, out, err = weft(t, t.path(), text=f"CREATE TABLE u(id INTEGER PRIMARY KEY, n);\n"
                          f".import --csv {path} u\nSELECT count(*) FROM u;\n")
    same((code, out), (1, "0\n"))                       # The header is no integer: all undone.


def test_import_many_rows(t):
    path = os.path.join(t.folder, "in.csv")
    rows = 3000 if t.slow else 30000
    with open(path, "w", encoding="utf-8") as file:
        for i in range(rows):
            file.write(f"{i},value {i}\n")
    out, _ = both(t, f"CREATE TABLE t(a INTEGER PRIMARY KEY, b);\n.import --csv {path} t\n"
                     "SELECT count(*), sum(a), max(b) FROM t;\n")
    same(out, f"{rows}|{rows * (rows - 1) // 2}|value {rows - 1 if rows < 10 else 9999 if rows > 9999 else 999}\n")


def test_dump_makes_the_same_database(t):
    text = TABLE + ("CREATE INDEX ti ON t(name);\nCREATE TABLE \"odd name\"(\"a b\", c);\n"
                    "INSERT INTO \"odd name\" VALUES(1, 'x'';'), (NULL, 'two\nlines');\n")
    dump = both(t, text + ".dump\n")[0]
    again = weft(t, t.path(), text=dump + ".dump\n")
    same(again, (0, dump, ""))
    same("INSERT INTO t VALUES(1,'x',1.5,X'4142');" in dump, True)
    sqlite = shutil.which("sqlite3")
    if sqlite is not None:
        done = subprocess.run([sqlite], input=(dump + "SELECT count(*) FROM t;").encode(),
                              capture_output=True, check=False)
        same((done.stdout, done.stderr), (b"3\n", b""))


def test_read_and_output(t):
    script, result = os.path.join(t.folder, "s.sql"), os.path.join(t.folder, "r.txt")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"SELECT 'from the file';\n.output {result}\nSELECT 'to the file';\n.output\n")
    out, _ = both(t, f".read {script}\nSELECT 'back';\n")
    same(out, "from the file\nback\n")
    with open(result, encoding="utf-8") as file:
        same(file.read(), "to the file\n")
    loop = os.path.join(t.folder, "loop.sql")
    with open(loop, "w", encoding="utf-8") as file:
        file.write(f".read {loop}\n")
    same("nested too deep" in weft(t, text=f".read {loop}\n")[2], True)


def test_transactions_and_reopen(t):
    path = t.path()
    same(weft(t, path, text="CREATE TABLE t(a);BEGIN;INSERT INTO t VALUES(1);COMMIT;\n"
                            "BEGIN;INSERT INTO t VALUES(2);\n")[0], 0)
    same(weft(t, path, "SELECT a FROM t")[1], "1\n")    # The open transaction was rolled back.
    same(weft(t, path, text=f".open {t.path()}\n.tables\nCREATE TABLE u(x);\n.open {path}\n"
                            ".tables\n")[1], "t\n")


def test_timer(t):
    same(weft(t, text=".timer on\nSELECT 1;\n")[1].splitlines()[1].startswith("Run Time: real 0."),
         True)


def test_closed_output_ends_the_shell(t):
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    shell = subprocess.Popen([t.weft, t.path(), sql], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
    shell.stdout.readline()
    shell.stdout.close()
    shell.wait(timeout=60)


class Terminal:
    """A weft on a pseudo-terminal."""

    def __init__(self, *command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "dumb"
            os.environ["HOME"] = "/nonexistent"
            os.execv(command[0], command)
        self.text = ""

    def expect(self, wanted, timeout=60):
        deadline = time.monotonic() + timeout
        while wanted not in self.text:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {wanted!r} in {self.text!r}")
            try:
                self.text += os.read(self.fd, 4096).decode(errors="replace")
            except OSError as gone:
                raise AssertionError(f"ended: {self.text!r}") from gone
        self.text = self.text.split(wanted, 1)[1]

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self):
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n;\n"


def interactive(terminal):
    terminal.expect("weft> ")
    terminal.type("SELECT 6 *\n")
    terminal.expect("...> ")
    terminal.type("7;\n")
    terminal.expect("42")
    terminal.expect("weft> ")
    terminal.type(ENDLESS)
    time.sleep(0.5)
    os.kill(terminal.pid, signal.SIGINT)
    terminal.expect("interrupted")
    terminal.expect("weft> ")
    terminal.type("SELECT 'still ' || 'here';\n")
    terminal.expect("still here")
    terminal.type(".quit\n")
    same(terminal.wait(), 0)


def test_prompt_and_interrupt(t):
    interactive(Terminal(t.weft, t.path()))


def test_a_statement_of_several_lines_comes_back_whole(t):
    terminal = Terminal(t.weft, t.path())
    terminal.expect("weft> ")
    for line in ("SELECT 'four' ||", "  'ty-two'", ";"):
        terminal.type(line + "\n")
    terminal.expect("fourty-two")                     # Not as typed: there it is in two pieces.
    terminal.expect("weft> ")
    terminal.type("\x10\n")                           # The line before, as the arrow key gives it.
    terminal.expect("'four' ||   'ty-two' ;")
    terminal.expect("fourty-two")
    terminal.type(".quit\n")
    same(terminal.wait(), 0)


def test_what_import_and_once_refuse(t):
    path = os.path.join(t.folder, "two.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("1,2\n")
    code, _, err = weft(t, text=f".separator :: \n.import {path} x\n.once -x\n.output --bom f\n")
    same((code, "separator of one character" in err, 'unknown option: "-x"' in err), (1, True, True))
    same(weft(t, text=f".import --csv {path} x\n.expert\n.trace stdout\n.recover\n")[2].count(
        "is not supported"), 3)


def test_options_as_sqlite_has_them(t):
    init = os.path.join(t.folder, "init.sql")
    with open(init, "w", encoding="utf-8") as file:
        file.write(".mode csv\n.headers on\n")
    same(weft(t, "--init", init, ":memory:", "SELECT 1 AS a, 'x y' AS b")[1], 'a,b\r\n1,"x y"\r\n')
    same(weft(t, ":memory:", "SELECT 1", ".print two", "SELECT 3")[:2], (0, "1\ntwo\n3\n"))
    same(weft(t, "-bail", ":memory:", "SELEC", "SELECT 3")[:2], (1, ""))
    same(weft(t, "-newline", ";", ":memory:", "VALUES(1),(2)")[1], "1;2;")
    same(weft(t, "-html", ":memory:", "SELECT 1")[1], "<TR><TD>1</TD>\n</TR>\n")


def test_prompt_and_interrupt_through_a_server(t):
    with Server(t.weftd, t.path()) as server:
        interactive(Terminal(t.weft, "--connect", server.address))


def test_server_with_token_and_without_server(t):
    with Server(t.weftd, t.path(), env={"WEFT_TOKEN": "secret"}) as server:
        same(weft(t, "--connect", server.address, "SELECT 1", env={"WEFT_TOKEN": "secret"})[:2],
             (0, "1\n"))
        for token in ({}, {"WEFT_TOKEN": "wrong"}):
            code, _, err = weft(t, "--connect", server.address, "SELECT 1", env=token)
            same((code, "token" in err), (1, True))
        address = server.address
    code, _, err = weft(t, "--connect", address, "SELECT 1")
    same((code, "unable to open" in err), (1, True))


if __name__ == "__main__":
    harness.main(globals())
