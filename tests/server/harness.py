"""harness.py -- run the test functions of a file, print TAP, end with status 1 if one failed.

A test is a function named test_*; it gets a Context.  `checks` at the top of each file say what is
tried.  Used as:  harness.main(globals())
"""
import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True


class Context:
    def __init__(self, options, folder):
        self.weftd, self.weft, self.folder = options.weftd, options.weft, folder
        self.slow = options.slow       # A build with sanitizers: less work, no limits on memory.
        self.number = 0

    def path(self, name="app.weft"):
        self.number += 1
        return os.path.join(self.folder, f"{self.number}-{name}")


def same(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r}, wanted {wanted!r}")


def main(names):
    parser = argparse.ArgumentParser()
    parser.add_argument("--weftd")
    parser.add_argument("--weft")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("only", nargs="*")
    options = parser.parse_args()
    tests = [(name[5:], run) for name, run in names.items()
             if name.startswith("test_") and callable(run)]
    if options.only:
        tests = [(name, run) for name, run in tests if name in options.only]
    print(f"1..{len(tests)}", flush=True)
    bad = 0
    for number, (name, run) in enumerate(tests, 1):
        folder = tempfile.mkdtemp(prefix="weft-test-")
        started = time.monotonic()
        try:
            run(Context(options, folder))
            print(f"ok {number} - {name} ({time.monotonic() - started:.2f} s)", flush=True)
        except Exception:  # pylint: disable=broad-except
            bad += 1
            print(f"not ok {number} - {name}", flush=True)
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if bad else 0)
