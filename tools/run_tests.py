#!/usr/bin/env python3
"""run_tests.py WHAT -- build and run the tests, and sum them up.

WHAT is test (all that must be green), check (the inner loop), asan, ubsan, tsan or sim.  The last
line of output is "N passed, N failed", alone; status 0 only if nothing failed.  Counted are
the cases inside a test program where it prints TAP (the unit tests do), else programs.  A build or
a sanitizer report that fails counts as one failed case.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Suites in which several tasks meet; ThreadSanitizer runs these.
CONCURRENT_SUITES = ("rt", "store", "session", "server", "capi")
# Suites for the inner loop are those of the folders; long ones carry the suite name "long" too.
JOBS = str(os.cpu_count() or 2)


class Tally:
    def __init__(self):
        self.passed = self.failed = 0
        self.failures = []
        self.started = time.monotonic()

    def count(self, name, passed, failed=0, detail=""):
        self.passed += passed
        self.failed += failed
        if failed:
            self.failures.append(name)
            print(f"FAILED {name}\n{detail.rstrip()}", flush=True)

    def step(self, text):
        print(f"== {time.monotonic() - self.started:5.0f} s  {text}", flush=True)

    def finish(self):
        self.step("done")
        for name in self.failures:
            print(f"   failed: {name}")
        if self.passed + self.failed == 0:
            self.failed = 1
            print("   no test ran")
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed else 0


def run(command, **options):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace",
                          check=False, stdin=subprocess.DEVNULL, **options)


def tail(text, lines=60):
    return "\n".join(text.rstrip().splitlines()[-lines:])


def errors_first(text):
    lines = [line for line in text.splitlines() if re.search(r"error|FAILED", line)
             and not line.startswith("ccache")]
    return "\n".join(line[:300] for line in lines) or text


def static_checks(tally, with_symbols):
    tally.step("layers, tidy, format")
    for script in ("check_layers.py", "tidy.py", "check_format.py"):
        result = run([sys.executable, f"tools/{script}"])
        tally.count(f"tools/{script}", result.returncode == 0, result.returncode != 0,
                    tail(result.stdout + result.stderr))
    result = run([sys.executable, "tools/capi_list.py", "--check"])
    tally.count("tools/capi_list.py", result.returncode == 0, result.returncode != 0,
                tail(result.stdout + result.stderr))
    if with_symbols:
        result = run([sys.executable, "tools/check_symbols.py", "build/release"])
        tally.count("tools/check_symbols.py", result.returncode == 0, result.returncode != 0,
                    tail(result.stdout + result.stderr))


def build(tally, kind):
    tally.step(f"{kind}: build")
    result = run(["make", "-s", f"full-{kind}"])
    if result.returncode != 0:
        # What could be built is tested all the same, so that one mistake hides no other.
        tally.count(f"build {kind}", 0, 1, tail(errors_first(result.stdout + result.stderr)))
        return (ROOT / "build" / kind / "meson-logs").exists()
    return True


def instruction_counts(tally):
    """bench/instr: short statements may not cost over 3 % more than the committed baseline."""
    tally.step("instruction counts")
    if shutil.which("valgrind") is None and "CI" not in os.environ:
        print("SKIPPED: valgrind is not installed", flush=True)
        return
    result = run([sys.executable, "bench/instr/run.py", "--build", "build/release"])
    good = len(re.findall(r"^ok ", result.stdout, re.M))
    bad = len(re.findall(r"^not ok ", result.stdout, re.M))
    if result.returncode != 0:
        tally.count("bench/instr", good, max(bad, 1), tail(result.stdout + result.stderr))
    elif good:
        tally.count("bench/instr", good)
    else:
        print(tail(result.stdout), flush=True)
    store_instruction_counts(tally)


def random_statements(tally):
    """fuzz/diff.py: random statements beside SQLite.  The first seed comes from the number of
    commits: other statements with each commit, the same ones when a commit is tested again."""
    tally.step("random statements beside SQLite")
    if run(["tools/peer.sh", "build/peer"]).returncode != 0:
        print("SKIPPED: the peer cannot be had", flush=True)
        return
    commits = run(["git", "rev-list", "--count", "HEAD"]).stdout.strip()
    first = 1000 * int(commits) if commits.isdigit() else 1
    result = run([sys.executable, "fuzz/diff.py", "--weft", "build/release/libsqlite3.so.0",
                  "--sqlite", "build/peer/libsqlite3.so", "--statements", "50000",
                  "--first", str(first), "--seconds", "240"])
    bad = len(re.findall(r"^-- seed ", result.stdout, re.M))
    if result.returncode != 0:
        tally.count("fuzz/diff", 0, max(bad, 1), tail(result.stdout + result.stderr))
    else:
        tally.count("fuzz/diff", 1)
    print(result.stdout.strip().split("\n")[-1], flush=True)


def logic_checks(tally):
    """fuzz/logic.py: one question asked in two ways; the seeds change with each commit."""
    tally.step("questions asked in two ways")
    commits = run(["git", "rev-list", "--count", "HEAD"]).stdout.strip()
    first = 1000 * int(commits) if commits.isdigit() else 1
    result = run([sys.executable, "fuzz/logic.py", "--weft", "build/release/libsqlite3.so.0",
                  "--checks", "10000", "--first", str(first), "--seconds", "120"])
    bad = len(re.findall(r"^-- seed ", result.stdout, re.M))
    if result.returncode != 0:
        tally.count("fuzz/logic", 0, max(bad, 1), tail(result.stdout + result.stderr))
    else:
        tally.count("fuzz/logic", 1)
    print(result.stdout.strip().split("\n")[-1], flush=True)


def store_instruction_counts(tally):
    """bench/store: no call of the store's face may cost more than its budget."""
    if shutil.which("valgrind") is None:
        return
    result = run([sys.executable, "bench/store/count.py",
                  "build/release/tests/unit/store/store_bench"])
    rows = len(re.findall(r"^store\.", result.stdout, re.M))
    above = len(re.findall(r"above its budget", result.stdout))
    if result.returncode != 0:
        tally.count("bench/store", rows - above, max(above, 1),
                    tail(result.stdout + result.stderr))
    else:
        tally.count("bench/store", rows)


def environment():
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", PYTHONDONTWRITEBYTECODE="1")
    env["ASAN_OPTIONS"] = "detect_stack_use_after_return=0:abort_on_error=0:" \
        + env.get("ASAN_OPTIONS", "")
    env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1:" + env.get("UBSAN_OPTIONS", "")
    env["TSAN_OPTIONS"] = "halt_on_error=1:second_deadlock_stack=1:" + env.get("TSAN_OPTIONS", "")
    return env


def cases_of(entry):
    """(passed, failed) of one program: its TAP lines, else the program itself."""
    text = entry.get("stdout") or ""
    good = len(re.findall(r"^\s*ok \d+(?! # SKIP)", text, re.M))
    bad = len(re.findall(r"^\s*not ok \d+(?! # (?:SKIP|TODO))", text, re.M))
    if entry["result"] == "SKIP":
        return 0, 0
    if entry["result"] in ("OK", "EXPECTEDFAIL"):
        return (good, bad) if good + bad else (1, 0)
    return good, max(bad, 1)


def meson_test(tally, kind, suites=(), exclude=(), multiplier=1):
    tally.step(f"{kind}: tests" + (f" ({' '.join(suites)})" if suites else ""))
    folder = ROOT / "build" / kind
    log = folder / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    command = ["meson", "test", "-C", str(folder), "--no-rebuild", "--num-processes", JOBS,
               "--timeout-multiplier", str(multiplier)]
    for suite in suites:
        command += ["--suite", suite]
    for suite in exclude:
        command += ["--no-suite", suite]
    result = run(command, env=environment())
    entries = []
    if log.exists():
        entries = [json.loads(line) for line in log.read_text(errors="replace").splitlines()]
    for entry in entries:
        passed, failed = cases_of(entry)
        detail = (entry.get("stdout") or "") + (entry.get("stderr") or "")
        tally.count(f"{kind}: {entry['name']} ({entry['result']})", passed, failed, tail(detail))
        if "WEFT_SEED" in os.environ:
            print(f"{entry['name']}\n{tail(detail)}", flush=True)
    if not entries and "No suitable tests" not in result.stdout + result.stderr \
            and "No tests defined" not in result.stdout + result.stderr:
        tally.count(f"{kind}: meson test", 0, 1, tail(result.stdout + result.stderr))
    elif result.returncode != 0 and not any(cases_of(e)[1] for e in entries) and entries:
        tally.count(f"{kind}: meson test", 0, 1, tail(result.stdout + result.stderr))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("test", "check", "asan", "ubsan", "tsan", "sim"))
    parser.add_argument("--seed")
    options = parser.parse_args()
    tally = Tally()
    if options.seed:
        os.environ["WEFT_SEED"] = options.seed

    if options.what == "test":
        if build(tally, "release"):
            meson_test(tally, "release")
            instruction_counts(tally)
            random_statements(tally)
            logic_checks(tally)
        static_checks(tally, with_symbols=True)
        if build(tally, "debug"):
            meson_test(tally, "debug", multiplier=4)
        if build(tally, "tsan"):
            # The fuzzers bring in OpenSSL, whose own synchronisation is not seen.
            meson_test(tally, "tsan", suites=CONCURRENT_SUITES, exclude=("long", "fuzz"),
                       multiplier=8)
    elif options.what == "check":
        static_checks(tally, with_symbols=(ROOT / "build/release/build.ninja").exists())
        if build(tally, "debug"):
            meson_test(tally, "debug", exclude=("long",), multiplier=4)
    elif options.what == "sim":
        meson_test(tally, "debug", suites=("sim",), multiplier=20)
    elif build(tally, options.what):
        suites = CONCURRENT_SUITES if options.what == "tsan" else ()
        meson_test(tally, options.what, suites=suites, multiplier=8)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
