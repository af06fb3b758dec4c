#!/usr/bin/env python3
"""amalgamation.py BUILD: the pair sqlite3.c + sqlite3.h compiles by itself, into a program that works,
and gives it no names but those of the C API.  Fails when a source of the engine cannot be joined."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# A program that has names which the engine has too, and two threads' worth of library behind it.
PROGRAM = r"""
#include "sqlite3.h"
#include <stdio.h>
int err_name, store_open, value_compare;
static int row(void *arg, int count, char **values, char **names)
{
    (void)arg;
    for (int i = 0; i < count; i++) printf("%s=%s ", names[i], values[i] ? values[i] : "NULL");
    puts("");
    return 0;
}
int main(int argc, char **argv)
{
    sqlite3 *db;
    char *text = 0;
    if (argc != 2 || sqlite3_open(argv[1], &db) != SQLITE_OK) return 1;
    int rc = sqlite3_exec(db,
        "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b TEXT);"
        "INSERT INTO t(b) SELECT printf('%05d', value) FROM generate_series(1, 1000);"
        "SELECT count(*) AS n, max(b) AS top, sum(a) AS s FROM t", row, 0, &text);
    if (rc != SQLITE_OK) printf("%d %s\n", rc, text);
    return sqlite3_close(db) + rc + err_name + store_open + value_compare;
}
"""


def main():
    build = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.executable, ROOT / "tools/amalgamate.py", build, folder], check=True)
        (folder / "program.c").write_text(PROGRAM, encoding="ascii")
        subprocess.run(["cc", "-O0", "-c", "sqlite3.c", "program.c"], cwd=folder, check=True)
        subprocess.run(["cc", "sqlite3.o", "program.o", "-lpthread", "-lm", "-o", "program"],
                       cwd=folder, check=True)
        found = [subprocess.run([folder / "program", folder / "test.weft"], check=True,
                                capture_output=True, text=True).stdout for _ in range(2)]
        assert found == ["n=1000 top=01000 s=500500 \n", "n=2000 top=01000 s=2001000 \n"], found
        # Hidden names stay in a library made of it; none may be the program's to clash with.
        names = subprocess.run(["nm", "-g", "--defined-only", "sqlite3.o"], cwd=folder, check=True,
                               capture_output=True, text=True).stdout.split("\n")
        functions = [line.split()[2] for line in names if re.match(r"\w+ [TW] ", line)]
        others = [f for f in functions if not re.match(r"sqlite3|rt__switch", f)]
        assert len(functions) > 280 and not others, others
        listed = set((ROOT / "src/capi/names.txt").read_text(encoding="ascii").split())
        assert listed <= set(functions), sorted(listed - set(functions))


main()
