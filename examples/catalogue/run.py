#!/usr/bin/env python3
"""run.py -- the main job: a real catalogue, four writers, questions, a crash, and the proof.

    make run        (or: run.py --build build/release [--packages N] [--folder DIR])

 1. start weftd on a scratch directory
 2. load this machine's Debian package catalogue through four connections at once
 3. ask questions about it, and compare each answer with one computed here from the same lists
 4. update every package while a long query runs on its snapshot
 5. load the catalogue a second time, kill the server with SIGKILL in the middle, start it again
 6. prove that every acknowledged transaction is there and that no half transaction is
 7. print the figures

Ends with status 0 only if all of it held.  Standard library only; speaks Quack (docs/quack.md).
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import sys
import threading
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "server"))
import catalogue  # noqa: E402  pylint: disable=wrong-import-position
from quack import Closed, QuackError, Server  # noqa: E402  pylint: disable=wrong-import-position

WRITERS = 4
BATCH = 64            # Packages in one transaction.
TRIES = 20            # For a transaction that loses a conflict.

SCHEMA = """
CREATE TABLE package(id INTEGER PRIMARY KEY, batch INTEGER NOT NULL, name TEXT NOT NULL,
                     version TEXT, section TEXT, maintainer TEXT, size INTEGER, installed INTEGER,
                     summary TEXT);
CREATE TABLE relation(id INTEGER PRIMARY KEY, batch INTEGER NOT NULL, package INTEGER NOT NULL,
                      kind TEXT NOT NULL, alternative INTEGER NOT NULL, target TEXT NOT NULL,
                      operator TEXT, version TEXT);
CREATE TABLE batch(id INTEGER PRIMARY KEY, packages INTEGER NOT NULL, relations INTEGER NOT NULL);
CREATE INDEX package_name ON package(name);
CREATE INDEX relation_package ON relation(package);
CREATE INDEX relation_target ON relation(target);
"""
INSERT_PACKAGE = "INSERT INTO package VALUES(?,?,?,?,?,?,?,?,?)"
INSERT_RELATION = "INSERT INTO relation VALUES(?,?,?,?,?,?,?,?)"
INSERT_BATCH = "INSERT INTO batch VALUES(?,?,?)"


class Failed(Exception):
    """Something that had to hold did not."""


def require(condition, text):
    if not condition:
        raise Failed(text)


def heading(text):
    print(f"\n== {text}", flush=True)


class Batch:
    """One transaction of the load: packages with their relations, ids given out beforehand."""

    def __init__(self, number, packages, first_package, first_relation):
        self.number = number
        self.packages, self.relations = [], []
        for offset, (*fields, rows) in enumerate(packages):
            package = first_package + offset
            self.packages.append([package, number, *fields])
            for row in rows:
                self.relations.append([first_relation + len(self.relations), number, package, *row])

    def lines(self):
        """The requests of the transaction, to be sent at once; the answers come in order."""
        requests = [{"q": "BEGIN"}, {"q": INSERT_PACKAGE, "rows": self.packages},
                    {"q": INSERT_RELATION, "rows": self.relations},
                    {"q": INSERT_BATCH,
                     "params": [self.number, len(self.packages), len(self.relations)]},
                    {"q": "COMMIT"}]
        return b"".join(json.dumps(r).encode() + b"\n" for r in requests), len(requests)


def make_batches(packages, first_batch, first_package, first_relation):
    batches = []
    for at in range(0, len(packages), BATCH):
        batch = Batch(first_batch + len(batches), packages[at:at + BATCH], first_package,
                      first_relation)
        first_package += len(batch.packages)
        first_relation += len(batch.relations)
        batches.append(batch)
    return batches


class Load:
    """Several connections that work through a list of batches; what was acknowledged is noted."""

    def __init__(self, server, batches):
        self.server, self.batches = server, batches
        self.next, self.lock = 0, threading.Lock()
        self.acknowledged = set()
        self.rows = self.bytes = self.conflicts = 0
        self.errors = []
        self.started = time.monotonic()

    def take(self):
        with self.lock:
            self.next += 1
            return self.batches[self.next - 1] if self.next <= len(self.batches) else None

    def send(self, client, batch):
        """One transaction; an error in it is reported after its answers were read."""
        data, count = batch.lines()
        client.send_bytes(data)
        error = None
        for _ in range(count):
            try:
                client.answer()
            except QuackError as problem:
                error = error or problem
        if error is not None:
            raise error
        with self.lock:
            self.acknowledged.add(batch.number)
            self.rows += len(batch.packages) + len(batch.relations) + 1
            self.bytes += len(data)

    def work(self):
        try:
            with self.server.connect() as client:
                while (batch := self.take()) is not None:
                    for attempt in range(TRIES):
                        try:
                            self.send(client, batch)
                            break
                        except QuackError as error:
                            if error.name != "SQLITE_BUSY_SNAPSHOT" or attempt == TRIES - 1:
                                raise
                            self.conflicts += 1
                            try:
                                client.call(q="ROLLBACK")
                            except QuackError:
                                pass      # COMMIT of a failed transaction has ended it already.
        except (Closed, OSError) as gone:
            self.errors.append(("gone", gone))
        except Exception as error:  # pylint: disable=broad-except
            self.errors.append(("error", error))

    def run(self, kill_at=None):
        """Work to the end; with `kill_at` the server is killed after so many transactions."""
        self.started = time.monotonic()
        threads = [threading.Thread(target=self.work) for _ in range(WRITERS)]
        for thread in threads:
            thread.start()
        killed = False
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.1 if kill_at is None else 0.005)
            done = len(self.acknowledged)
            if kill_at is not None and done >= kill_at and not killed:
                killed = True
                self.server.kill()
            self.progress(done)
        self.progress(len(self.acknowledged), final=True)
        self.seconds = time.monotonic() - self.started
        for kind, error in self.errors:
            require(kill_at is not None and kind == "gone", f"a writer failed: {error}")
        return killed

    last_shown = -1.0

    def progress(self, done, final=False):
        now = time.monotonic()
        if not final and now - self.last_shown < (0.2 if sys.stdout.isatty() else 3.0):
            return
        self.last_shown = now
        seconds = max(now - self.started, 1e-6)
        text = (f"   {done:5d} of {len(self.batches)} transactions, {self.rows:,} rows, "
                f"{self.rows / seconds:,.0f} rows/s")
        if sys.stdout.isatty():
            print("\r" + text + ("\n" if final else ""), end="", flush=True)
        else:
            print(text, flush=True)


# ---- questions, each with its answer computed here ----

def top(counter, count):
    return [list(item) for item in sorted(counter.items(), key=lambda kv: (-kv[1], kv[0]))[:count]]


def answer_sections(packages):
    size, count = collections.Counter(), collections.Counter()
    for _, _, section, _, _, installed, _, _ in packages:
        if section is not None:
            size[section] += installed or 0
            count[section] += 1
    return [[name, count[name], kib] for name, kib in top(size, 8)]


def answer_needed(packages):
    needed = collections.Counter()
    for package in packages:
        for target in {row[2] for row in package[7] if row[0] in ("Depends", "Pre-Depends")}:
            needed[target] += 1
    return top(needed, 8)


def answer_maintainers(packages):
    size = collections.Counter()
    for package in packages:
        if package[3] is not None:
            size[package[3]] += package[5] or 0
    return top(size, 8)


def answer_heavy_needs(packages):
    """Packages whose direct dependencies (first alternatives that exist) are heaviest."""
    installed = {}
    for package in packages:
        installed[package[0]] = max(installed.get(package[0], 0), package[5] or 0)
    weight = collections.Counter()
    for package in packages:
        for row in package[7]:
            if row[0] == "Depends" and row[2] in installed:
                weight[package[0]] += installed[row[2]]
    return top(weight, 5)


def answer_kinds(packages):
    kinds = collections.Counter(row[0] for package in packages for row in package[7])
    return top(kinds, 20)


def closure_root(packages):
    """A package that pulls in much, on every Debian: the desktop, else the one with most needs."""
    names = {package[0] for package in packages}
    if "gnome" in names:
        return "gnome"
    return max(packages, key=lambda p: (sum(row[0] == "Depends" for row in p[7]), p[0]))[0]


def answer_closure(packages):
    needs, installed = collections.defaultdict(set), {}
    for package in packages:
        installed[package[0]] = max(installed.get(package[0], 0), package[5] or 0)
        needs[package[0]].update(row[2] for row in package[7] if row[0] == "Depends")
    todo, seen = [closure_root(packages)], {closure_root(packages)}
    while todo:
        new = needs.get(todo.pop(), set()) - seen
        seen |= new
        todo += new
    there = [name for name in seen if name in installed]
    return [[len(there), sum(installed[name] for name in there)]]


QUESTIONS = [
    ("largest sections (packages, KiB installed)", answer_sections,
     "SELECT section, count(*), sum(coalesce(installed, 0)) AS kib FROM package "
     "WHERE section IS NOT NULL GROUP BY section ORDER BY kib DESC, section LIMIT 8"),
    ("most needed packages (by how many)", answer_needed,
     "SELECT target, count(DISTINCT package) AS needed FROM relation "
     "WHERE kind IN ('Depends', 'Pre-Depends') GROUP BY target ORDER BY needed DESC, target LIMIT 8"),
    ("maintainers with the most installed size (KiB)", answer_maintainers,
     "SELECT maintainer, sum(coalesce(installed, 0)) AS kib FROM package "
     "WHERE maintainer IS NOT NULL GROUP BY maintainer ORDER BY kib DESC, maintainer LIMIT 8"),
    ("heaviest direct dependencies (KiB)", answer_heavy_needs,
     "SELECT p.name, sum(n.kib) AS weight FROM relation r JOIN package p ON p.id = r.package "
     "JOIN (SELECT name, max(coalesce(installed, 0)) AS kib FROM package GROUP BY name) n "
     "ON n.name = r.target WHERE r.kind = 'Depends' GROUP BY p.name "
     "ORDER BY weight DESC, p.name LIMIT 5"),
    ("relations by kind", answer_kinds,
     "SELECT kind, count(*) AS n FROM relation GROUP BY kind ORDER BY n DESC, kind LIMIT 20"),
    ("all that {root} needs, directly or not, and its KiB", answer_closure,
     "WITH RECURSIVE need(name) AS (SELECT :root UNION SELECT r.target FROM need n "
     "JOIN package p ON p.name = n.name JOIN relation r ON r.package = p.id "
     "WHERE r.kind = 'Depends') "
     "SELECT count(*), sum(kib) FROM (SELECT p.name, max(coalesce(p.installed, 0)) AS kib "
     "FROM need n JOIN package p ON p.name = n.name GROUP BY p.name)"),
]


def ask(server, packages):
    root = closure_root(packages)
    with server.connect() as client:
        for title, compute, sql in QUESTIONS:
            started = time.monotonic()
            rows = client.query(sql, {"root": root} if ":root" in sql else None)
            seconds = time.monotonic() - started
            title = title.replace("{root}", root)
            print(f"\n   {title}: {seconds * 1000:,.0f} ms")
            for row in rows[:8]:
                print("      " + "  ".join(f"{v:>12,}" if isinstance(v, int) else f"{v:<44.44}"
                                           for v in row))
            require(rows == compute(packages), f"the answer is not that of the lists: {title}")
        name = packages[len(packages) // 2][0]
        started = time.monotonic()
        for _ in range(1000):
            client.query("SELECT id, version FROM package WHERE name = ?", [name])
        micros = (time.monotonic() - started) * 1000
        print(f"\n   one package by name, 1,000 times over one connection: {micros:,.0f} us each")


# ---- an update beside a long query ----

LONG_QUERY = ("SELECT sum(p.installed * length(r.target)), count(*) FROM relation r "
              "JOIN package p ON p.id = r.package")


def update_beside_query(server, count):
    with server.connect() as reader, server.connect() as writer:
        reader.run("BEGIN")
        before = reader.query("SELECT sum(installed), count(*) FROM package")
        expected = reader.query(LONG_QUERY)
        started = time.monotonic()
        reader.send(q=LONG_QUERY)
        changed = writer.run("UPDATE package SET installed = coalesce(installed, 0) + 1")["done"]
        updated = time.monotonic() - started
        rows = reader.answer()[1]
        queried = time.monotonic() - started
        require(changed == count, f"{changed} rows updated instead of {count}")
        require(rows == expected, "the long query saw the update")
        require(reader.query("SELECT sum(installed), count(*) FROM package") == before,
                "the snapshot moved")
        reader.run("COMMIT")
        after = reader.query("SELECT sum(installed), count(*) FROM package")
        require(after == [[before[0][0] + count, before[0][1]]], f"the update is not whole: {after}")
        print(f"   {changed:,} rows updated in {updated:.2f} s; the query beside it took "
              f"{queried:.2f} s and saw its own snapshot")
        writer.run("UPDATE package SET installed = installed - 1")


# ---- the crash and its proof ----

def found_batches(client):
    packages = {n: (c, s) for n, c, s in client.query(
        "SELECT batch, count(*), sum(id) FROM package GROUP BY batch")}
    relations = {n: (c, s) for n, c, s in client.query(
        "SELECT batch, count(*), sum(id) FROM relation GROUP BY batch")}
    heads = {n: (p, r) for n, p, r in client.query("SELECT id, packages, relations FROM batch")}
    return packages, relations, heads


def check_whole(batch, packages, relations, heads):
    """True: all of it is there; False: nothing is; anything between is a half transaction."""
    wanted = [(len(batch.packages), sum(p[0] for p in batch.packages)),
              (len(batch.relations), sum(r[0] for r in batch.relations)),
              (len(batch.packages), len(batch.relations))]
    there = [packages.get(batch.number), relations.get(batch.number), heads.get(batch.number)]
    if not batch.relations:
        wanted.pop(1)
        there.pop(1)
    if all(part is None for part in there):
        return False
    require(there == wanted, f"transaction {batch.number} is there by half: {there}, not {wanted}")
    return True


def check_contents(client, batch):
    rows = client.query("SELECT id, batch, name, version, section, maintainer, size, installed, "
                        "summary FROM package WHERE id BETWEEN ? AND ? ORDER BY id",
                        [batch.packages[0][0], batch.packages[-1][0]])
    require(rows == batch.packages, f"transaction {batch.number}: packages differ")
    if batch.relations:
        rows = client.query("SELECT id, batch, package, kind, alternative, target, operator, version "
                            "FROM relation WHERE id BETWEEN ? AND ? ORDER BY id",
                            [batch.relations[0][0], batch.relations[-1][0]])
        require(rows == batch.relations, f"transaction {batch.number}: relations differ")


def prove(server, batches, acknowledged, seed):
    with server.connect() as client:
        packages, relations, heads = found_batches(client)
        whole = {b.number for b in batches if check_whole(b, packages, relations, heads)}
        lost = acknowledged - whole
        require(not lost, f"{len(lost)} acknowledged transactions are lost: {sorted(lost)[:5]}")
        unknown = whole - acknowledged
        require(len(unknown) <= WRITERS, f"{len(unknown)} transactions nobody was told about")
        strangers = (set(packages) | set(relations) | set(heads)) - {b.number for b in batches}
        require(not strangers, f"rows of unknown transactions: {sorted(strangers)[:5]}")
        by_number = {b.number: b for b in batches}
        sample = random.Random(seed).sample(sorted(whole), min(40, len(whole)))
        for number in sample:
            check_contents(client, by_number[number])
        print(f"   {len(acknowledged):,} acknowledged transactions, all there; {len(unknown)} more "
              "that were whole but not yet acknowledged; none by half")
        print(f"   {len(sample)} of them compared value by value")
        name = by_number[max(whole)].packages[0][2]
        by_index = client.query("SELECT count(*) FROM package WHERE name = ?", [name])
        by_scan = client.query("SELECT count(*) FROM package WHERE name || '' = ?", [name])
        require(by_index == by_scan, "index and table differ")


# ---- all of it ----

def connect_text(build, path):
    return f"""
== to look around yourself
   {build}/weftd --listen 127.0.0.1:7432 {path} &
   {build}/weft --connect 127.0.0.1:7432 "SELECT count(*) FROM package"
   echo '{{"q": "SELECT name, version FROM package LIMIT 3"}}' | nc -N 127.0.0.1 7432
   or without a server:   {build}/weft {path}
   or from a program: a socket and JSON lines, docs/quack.md has eight lines of Python;
   in C: include/weft.h with {build}/libweft.so"""


def file_megabytes(folder):
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def job(options, folder):
    started = time.monotonic()
    heading("reading this machine's package lists")
    packages = catalogue.load(options.packages)
    require(packages, "apt has no package lists here: run `apt-get update` once")
    first = make_batches(packages, 1, 1, 1)
    relations = sum(len(b.relations) for b in first)
    print(f"   {len(packages):,} packages, {relations:,} relations "
          f"({time.monotonic() - started:.1f} s)")

    path = folder / "catalogue.weft"
    weftd = str(options.build / "weftd")
    server = Server(weftd, str(path))
    try:
        heading(f"loading through {WRITERS} connections, {BATCH} packages a transaction, "
                "every commit synced")
        with server.connect() as client:
            client.call(script=SCHEMA)
        load = Load(server, first)
        load.run()
        print(f"   {load.rows:,} rows in {load.seconds:.1f} s: {load.rows / load.seconds:,.0f} "
              f"rows/s, {len(first) / load.seconds:,.0f} commits/s, {load.conflicts} conflicts; "
              f"{file_megabytes(folder):,.0f} MB on disk")
        heading("questions")
        ask(server, packages)
        heading("an update of every package beside a long query")
        update_beside_query(server, len(packages))

        heading("a second load, and SIGKILL in the middle of it")
        second = make_batches(packages, len(first) + 1, len(packages) + 1, relations + 1)
        kill_at = max(1, random.Random(options.seed).randrange(len(second) // 4,
                                                               len(second) // 2 + 1))
        crashed = Load(server, second)
        require(crashed.run(kill_at), "the second load ended before the kill")
        print(f"   killed after {len(crashed.acknowledged):,} acknowledged transactions")
        restart = time.monotonic()
        server.start()
        with server.connect() as client:
            client.query("SELECT count(*) FROM batch")
        print(f"   started again and answering after {time.monotonic() - restart:.2f} s")
        heading("the proof")
        # The update and its reversal make a NULL a 0, so compare with what is there now.
        for batch in first:
            for row in batch.packages:
                row[7] = row[7] or 0
        prove(server, first + second, load.acknowledged | crashed.acknowledged, options.seed)
        require(server.terminate() == 0, f"weftd did not end well: {server.log.decode()}")
        print(f"   clean end; {file_megabytes(folder):,.0f} MB on disk")
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.wait()
    print(connect_text(options.build, path))
    print(f"\nall held, {time.monotonic() - started:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--folder", type=pathlib.Path, help="default: BUILD/../catalogue")
    parser.add_argument("--packages", type=int, help="only the first N packages")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    parser.add_argument("--optional", action="store_true",
                        help="status 77 instead of failure where apt has no lists")
    options = parser.parse_args()
    if options.optional and not catalogue.list_files():
        print("apt has no package lists here: skipped")
        return 77
    folder = options.folder or options.build.resolve().parent / "catalogue"
    if not options.folder or options.optional:
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    try:
        job(options, folder)
    except (Failed, QuackError, Closed, OSError, RuntimeError) as problem:
        print(f"\nFAILED (seed {options.seed}): {problem}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
