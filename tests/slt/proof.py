#!/usr/bin/env python3
"""proof.py --runner SLT --lib LIBRARY -- the runner notices what is wrong.

Method: small scripts, each with a known number of mistakes; the runner must count exactly those.
"""
import argparse
import hashlib
import pathlib
import subprocess
import sys
import tempfile

TABLE = "statement ok\nCREATE TABLE t(a INTEGER, b TEXT)\n\n" \
        "statement ok\nINSERT INTO t VALUES(2,'x'),(10,NULL),(-5,'')\n\n"
HASH = hashlib.md5(b"-5\n10\n2\n").hexdigest()

# name, script, statements, queries, skipped, failures
CASES = [
    ("right rows", TABLE + "query I rowsort\nSELECT a FROM t\n----\n-5\n10\n2\n", 2, 1, 0, 0),
    ("right hash", TABLE + f"query I rowsort\nSELECT a FROM t\n----\n3 values hashing to {HASH}\n",
     2, 1, 0, 0),
    ("wrong count in hash",
     TABLE + f"query I rowsort\nSELECT a FROM t\n----\n4 values hashing to {HASH}\n", 2, 1, 0, 1),
    ("wrong order", TABLE + "query I nosort\nSELECT a FROM t ORDER BY a\n----\n-5\n10\n2\n",
     2, 1, 0, 1),
    ("missing row", TABLE + "query I rowsort\nSELECT a FROM t\n----\n-5\n10\n", 2, 1, 0, 1),
    ("wrong value", TABLE + "query I rowsort\nSELECT a FROM t\n----\n-5\n10\n3\n", 2, 1, 0, 1),
    ("empty and null", TABLE + "query T valuesort\nSELECT b FROM t\n----\n(empty)\nNULL\nx\n",
     2, 1, 0, 0),
    ("columns", TABLE + "query II rowsort\nSELECT a FROM t\n----\n", 2, 1, 0, 1),
    ("no such table", "query I nosort\nSELECT a FROM t\n----\n", 0, 1, 0, 1),
    ("error wanted", "statement error\nSELECT 1\n\nstatement error\nSELECT * FROM nowhere\n",
     2, 0, 0, 1),
    ("conditions", "skipif SQLite\nstatement ok\nnonsense\n\nonlyif mysql # remark\nquery I\nnonsense\n"
     "----\n1\n\nonlyif sqlite\nstatement ok\nSELECT 1\n\nonlyif mssql\nhalt\n\nstatement ok\nSELECT 2\n",
     2, 0, 2, 0),
    ("halt", "statement ok\nSELECT 1\n\nhalt\n\nstatement ok\nnonsense\n", 1, 0, 0, 0),
    ("labels", "query I nosort one\nSELECT 1\n----\n1\n\nquery I nosort one\nSELECT 2\n----\n2\n\n"
     "query I nosort two\nSELECT 3\n----\n3\n", 0, 3, 0, 1),
    ("skipped label", "query I nosort one\nSELECT 1\n----\n1\n\nskipif sqlite\nquery I nosort one\n"
     "SELECT 2\n----\n2\n", 0, 1, 1, 1),
    ("unknown record", "statment ok\nSELECT 1\n", 0, 0, 0, 1),
    ("comments and CR", "# first\r\nstatement ok\r\nSELECT\r\n# inside\r\n1\r\n\r\n", 1, 0, 0, 0),
    ("reals", "query R nosort\nSELECT -9223372036854775808.0\n----\n-9223372036854776000.000\n\n"
     "query RI nosort\nSELECT -0.0, 7.9\n----\n0.000\n7\n", 0, 2, 0, 0),
    ("bytes", "query T nosort\nSELECT 'ä'||char(9)\n----\n@@@\n", 0, 1, 0, 0),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--lib", required=True)
    options = parser.parse_args()
    bad = 0
    print(f"1..{len(CASES)}")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, script, *wanted) in enumerate(CASES, 1):
            path = pathlib.Path(folder) / "case.test"
            path.write_text(script, newline="")
            done = subprocess.run([options.runner, "--tsv", "--show", "0", "--lib", options.lib,
                                   str(path)], capture_output=True, text=True, check=False)
            got = [int(n) for n in done.stdout.strip().split("\t")[1:]]
            right = got == wanted and done.returncode == (1 if wanted[3] else 0)
            bad += not right
            print(f"{'ok' if right else 'not ok'} {number} - {name}")
            if not right:
                print(f"#   got {got} status {done.returncode}, wanted {wanted} {done.stderr}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
