#!/usr/bin/env python3
"""run.py -- unpack sqllogictest files and run them through the runner, several at once.

    run.py --build BUILD [--data DIR | --sample] [--quick] [--tap] [--lib LIBRARY] [--memory|--file]
           [FILTER...]

DIR holds *.tar.xz archives and files.tsv (path, bytes, statements, queries, skipped): what each
file must count.  Without DIR the sample beside this script is used.  Each file runs in a process of
its own, in memory and on a durable database file (--memory or --file: only one of them), with the
library's counts compared with files.tsv.  Status 0 when nothing failed.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# What the quick run leaves out: long files that add little.
SLOW = re.compile(r"(random/(expr|aggregates|groupby)|index/(between|delete|view|commute|random)"
                  r"|select3|select4)")

# Files whose every statement waits for the disk; the others would only measure it.
DURABLE = re.compile(r"select[12]|evidence")


def unpack(archives, folder):
    for archive in archives:
        with tarfile.open(archive, "r:xz") as tar:
            members = [m for m in tar.getmembers()
                       if m.isfile() and m.name.startswith("test/") and ".." not in m.name]
            tar.extractall(folder, members=members)


def expectations(table):
    rows = {}
    for line in table.read_text().splitlines()[1:]:
        path, _, statements, queries, skipped = line.split("\t")
        rows[path] = (int(statements), int(queries), int(skipped))
    return rows


class Job:
    def __init__(self, options, path, wanted, where, number):
        self.options, self.path, self.wanted, self.where = options, path, wanted, where
        self.number = number
        self.counts = (0, 0, 0)
        self.failures, self.text, self.seconds = 1, "", 0.0

    def run(self, tree, scratch):
        database = ":memory:" if self.where == "memory" else \
            str(scratch / f"slt-{self.number}.db")
        command = [self.options.runner, "--tsv", "--show", "5", "--db", database, "--lib",
                   self.options.lib, self.path]
        if self.where == "file" and not DURABLE.search(self.path):
            command[1:1] = ["--before", "PRAGMA synchronous = OFF"]
        started = time.monotonic()
        try:
            done = subprocess.run(command, cwd=tree, capture_output=True, text=True,
                                  errors="replace", timeout=self.options.timeout, check=False,
                                  stdin=subprocess.DEVNULL)
            output, status = done.stdout, done.returncode
            noise = done.stderr
        except subprocess.TimeoutExpired as late:
            output, status = (late.stdout or b"").decode(errors="replace"), -1
            noise = f"no end after {self.options.timeout} s\n"
        self.seconds = time.monotonic() - started
        lines = output.splitlines()
        last = lines[-1].split("\t") if lines else []
        if len(last) == 5 and last[0] == self.path:
            lines.pop()
            self.counts = tuple(int(n) for n in last[1:4])
            self.failures = int(last[4])
            if self.failures == 0 and self.counts != self.wanted:
                noise += f"counted {self.counts}, expected {self.wanted}\n"
                self.failures = 1
            elif status not in (0, 1) and self.failures == 0:
                self.failures = 1
        else:
            noise += f"ended with status {status}\n"
        self.text = "\n".join(lines) + ("\n" if lines else "") + noise
        return self


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--runner")
    parser.add_argument("--lib")
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tap", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--file", action="store_true")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("filters", nargs="*")
    options = parser.parse_args()
    if options.build:
        options.runner = options.runner or str(options.build / "tests/slt/slt")
        options.lib = options.lib or str(options.build / "libsqlite3.so.0")
    if not options.runner or not options.lib:
        parser.error("--build, or --runner and --lib")
    if os.sep in options.lib:
        options.lib = os.path.abspath(options.lib)
    options.runner = os.path.abspath(options.runner)
    return options


def main():
    options = parse()
    if options.data and (options.data / "files.tsv").exists():
        archives, table = sorted(options.data.glob("*.tar.xz")), options.data / "files.tsv"
    else:
        archives, table = [HERE / "sample.tar.xz"], HERE / "sample.tsv"
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="weft-slt-"))
    started = time.monotonic()
    try:
        unpack(archives, scratch)
        jobs = []
        wheres = [w for w in ("memory", "file") if not (options.memory or options.file)
                  or getattr(options, w)]
        for path, wanted in sorted(expectations(table).items()):
            if options.quick and SLOW.search(path):
                continue
            if options.filters and not any(f in path for f in options.filters):
                continue
            for where in wheres:
                jobs.append(Job(options, path, wanted, where, len(jobs) + 1))
        if options.tap:
            print(f"1..{len(jobs)}")
        bad = report(options, jobs, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    mark = "# " if options.tap else ""
    print(f"{mark}{len(jobs)} runs of {len({j.path for j in jobs})} files: "
          f"{sum(j.counts[0] for j in jobs)} statements, {sum(j.counts[1] for j in jobs)} queries, "
          f"{sum(j.failures for j in jobs)} failures in {bad} runs, "
          f"{time.monotonic() - started:.1f} s")
    return 1 if bad or not jobs else 0


def report(options, jobs, scratch):
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        waiting = [pool.submit(job.run, scratch, scratch) for job in jobs]
        for done in waiting:
            job = done.result()
            bad += job.failures > 0
            name = f"{job.path} ({job.where}): {job.counts[0]} statements, {job.counts[1]} queries"
            if options.tap:
                print(f"{'not ok' if job.failures else 'ok'} {job.number} - {name}")
            elif job.failures:
                print(f"{name}: {job.failures} failures, {job.seconds:.1f} s")
            if job.failures:
                for line in job.text.splitlines()[:14]:
                    print(f"#   {line[:240]}")
            sys.stdout.flush()
    return bad


if __name__ == "__main__":
    sys.exit(main())
