#!/usr/bin/env python3
"""life_test.py -- starting, stopping and being killed.

Method: run the real weftd; end it by SIGTERM, SIGINT and SIGKILL at awkward moments; start it again
and compare with what it had acknowledged.
"""
import os
import pathlib
import random
import re
import resource
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import harness
from harness import same
from quack import Closed, QuackError, Server, wait_running


def test_command_line(t):
    def run(*arguments):
        return subprocess.run([t.weftd, *arguments], capture_output=True, text=True, timeout=60,
                              check=False)
    same(run("--version").stdout.startswith("weftd "), True)
    same("usage" in run("--help").stdout, True)
    for arguments in ((), ("--nope", "x"), ("--listen",), ("a", "b"), ("--sync", "perhaps", "a"),
                      ("--max-line", "12X", "a"), ("--max-connections=0", "a")):
        done = run(*arguments)
        same((done.returncode, done.stderr.startswith("weftd: ")), (2, True))
    missing = run("--listen", "127.0.0.1:0", t.path("missing"))
    same((missing.returncode, "weftd:" in missing.stderr), (1, True))
    same(run("--create", "--listen", "127.0.0.1:99999", t.path()).returncode, 1)


def test_every_option_is_known_everywhere(t):
    """What --help names stands in the manual page too, and in a configuration file."""
    text = subprocess.run([t.weftd, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    options = sorted(set(re.findall(r"--([a-z][a-z-]*)", text)))
    same(len(options) > 30, True)
    page = (pathlib.Path(__file__).resolve().parents[2] / "dist/weftd.1").read_text(encoding="utf-8").replace("\\-", "-")
    same([name for name in options if "--" + name not in page], [])
    config = t.path("weftd.conf")
    for name in options:
        with open(config, "w", encoding="ascii") as file:
            file.write(f"{name} =\nnone-of-them = 1\n")
        done = subprocess.run([t.weftd, "--config", config, "x"], capture_output=True, text=True, timeout=60, check=False)
        unknown = f"unknown option in the configuration: {name}\n" in done.stderr
        same((name, done.returncode, unknown), (name, 2, name in ("config", "help", "version")))


def test_systemd_is_told(t):
    """Datagrams to NOTIFY_SOCKET: while it recovers, when it serves, reloads, and stops."""
    path = t.path("notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox:
        inbox.bind(path)
        inbox.settimeout(60)

        def told(*wanted):
            lines = inbox.recv(4096).decode().split("\n")
            same([line.split("=")[0] + "=" + (line.split("=")[1] if line.startswith("READY") else "") for line in lines], list(wanted))
        with Server(t.weftd, t.path(), env={"NOTIFY_SOCKET": path}) as server:
            told("EXTEND_TIMEOUT_USEC=", "STATUS=")
            told("READY=1", "STATUS=")
            server.process.send_signal(signal.SIGHUP)
            told("RELOADING=")
            told("READY=1")
            same(server.terminate(), 0)
            told("STOPPING=", "EXTEND_TIMEOUT_USEC=")


def test_descriptors_run_out(t):
    """Who is connected is served on; who comes is taken when there is room again."""
    with Server(t.weftd, t.path()) as server, server.connect() as old:
        old.run("CREATE TABLE t(a)")
        used = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (used + 10, used + 10))
        host, port = server.address.rsplit(":", 1)
        more = [socket.create_connection((host, int(port)), timeout=60) for _ in range(40)]
        for number in range(20):
            old.run("INSERT INTO t VALUES(?)", [number])
        same(old.query("SELECT count(*) FROM t"), [[20]])
        for one in more:
            one.close()
        with server.connect() as new:       # The acceptor pauses and tries again.
            same(new.query("SELECT count(*) FROM t"), [[20]])
        same(server.terminate(), 0)


def test_address_in_use(t):
    with Server(t.weftd, t.path()) as server:
        done = subprocess.run([t.weftd, "--create", "--listen", server.address, t.path()],
                              capture_output=True, text=True, timeout=60, check=False)
        same(done.returncode, 1)


def test_second_server_on_one_file(t):
    path = t.path()
    with Server(t.weftd, path) as server, server.connect() as c:
        c.run("CREATE TABLE t(a)")
        done = subprocess.run([t.weftd, "--listen", "127.0.0.1:0", path], capture_output=True,
                              text=True, timeout=60, check=False)
        same(done.returncode, 1)
        same(str(server.process.pid) in done.stderr, True)   # It names the owner.
        same(c.query("SELECT count(*) FROM t"), [[0]])


def test_sigterm_and_reopen(t):
    path = t.path()
    for number in (signal.SIGTERM, signal.SIGINT):
        with Server(t.weftd, path) as server, server.connect() as c:
            c.run("CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY)")
            c.run("INSERT INTO t SELECT coalesce(max(a), 0) + 1 FROM t")
            c.run("BEGIN")
            c.run("DELETE FROM t")                            # Open when the server stops.
            server.process.send_signal(number)
            same(server.wait(), 0)
    with Server(t.weftd, path, create=False) as server, server.connect() as c:
        same(c.query("SELECT count(*) FROM t"), [[2]])


def test_commits_are_synced_unless_told_otherwise(t):
    """SIGKILL cannot show it, since the kernel keeps what was written: so syncs are counted."""
    def syncs(*options):
        with Server(t.weftd, t.path(), *options) as server, server.connect() as c:
            def count():
                with urllib.request.urlopen(f"http://{server.address}/metrics") as answer:
                    found = re.search(r"^weft_store_log_syncs_total.* (\d+)$", answer.read().decode(), re.M)
                return int(found.group(1))
            c.run("CREATE TABLE t(a)")
            before = count()
            for _ in range(10):
                c.run("INSERT INTO t VALUES(1)")
            return count() - before
    same(syncs() >= 10, True)
    same(syncs("--sync", "full") >= 10, True)
    same(syncs("--sync", "off") < 10, True)


def test_drain_lets_a_request_finish(t):
    with Server(t.weftd, t.path(), "--drain-timeout", "60") as server, server.connect() as c, server.connect() as idle:
        same(idle.query("SELECT 1"), [[1]])
        c.send(q="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
                 "SELECT count(*) FROM n", params=[400000 if t.slow else 3000000])
        wait_running(idle)
        server.process.send_signal(signal.SIGTERM)
        same(len(c.answer()[1]), 1)
        same(server.wait(), 0)


def test_drain_interrupts_endless_requests(t):
    with Server(t.weftd, t.path(), "--drain-timeout", "1") as server, server.connect() as c, \
            server.connect() as idle:
        c.send(q="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                 "SELECT max(i) FROM n")
        wait_running(idle)
        server.process.send_signal(signal.SIGTERM)
        try:
            c.answer()
            raise AssertionError("it ended")
        except QuackError as error:
            same((error.name, "shutting down" in error.message), ("SQLITE_INTERRUPT", True))
        same(server.wait(), 0)


def writer(server, who, acknowledged, started):
    """Insert transactions of three rows until the server dies; note what was acknowledged."""
    try:
        with server.connect() as c:
            n = started
            while True:
                c.call(q="INSERT INTO t VALUES(?,?,?)",
                       rows=[[who, n, part] for part in range(3)])
                acknowledged[who].append(n)
                n += 1
    except (Closed, OSError):
        pass


def kill_round(t, path, acknowledged, tried, seed):
    with Server(t.weftd, path) as server:
        threads = [threading.Thread(target=writer, args=(server, who, acknowledged, tried[who]))
                   for who in acknowledged]
        for thread in threads:
            thread.start()
        time.sleep(random.Random(seed).uniform(0.05, 0.4))
        server.kill()
        for thread in threads:
            thread.join()
    for who, numbers in acknowledged.items():
        tried[who] = (numbers[-1] if numbers else -1) + 2    # One may have arrived unacknowledged.


def test_kill_loses_nothing_acknowledged(t):
    """Whole transactions only, every acknowledged one, and at most one more a writer and round."""
    path = t.path()
    with Server(t.weftd, path) as server, server.connect() as c:
        c.run("CREATE TABLE t(who INTEGER, n INTEGER, part INTEGER, PRIMARY KEY(who, n, part))")
    acknowledged = {who: [] for who in range(4)}
    tried = {who: 0 for who in acknowledged}
    for seed in range(3 if t.slow else 6):
        kill_round(t, path, acknowledged, tried, seed)
        with Server(t.weftd, path) as server, server.connect() as c:
            there = {}
            for who, n, parts in c.query("SELECT who, n, count(*) FROM t GROUP BY who, n"):
                same(parts, 3)
                there.setdefault(who, set()).add(n)
            for who, numbers in acknowledged.items():
                lost = set(numbers) - there.get(who, set())
                same(lost, set())
                extra = there.get(who, set()) - set(numbers)
                same(len(extra) <= seed + 1, True)
    same(sum(len(numbers) for numbers in acknowledged.values()) > 0, True)


def test_threads_instead_of_loops(t):
    with Server(t.weftd, t.path(), "--threads") as server, server.connect() as c:
        c.run("CREATE TABLE t(a INTEGER PRIMARY KEY)")
        clients = [server.connect() for _ in range(5)]
        for number, client in enumerate(clients):
            client.run("INSERT INTO t VALUES(?)", [number])
        clients[0].run("BEGIN")
        for client in clients[1:]:
            client.close()
        same(c.query("SELECT count(*) FROM t"), [[5]])
        same(server.terminate(), 0)


def test_many_idle_connections(t):
    """Idle ones own no stack: what a thousand add to the server's memory stays small."""
    def resident(server):
        with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with Server(t.weftd, t.path()) as server:
        first = [server.connect() for _ in range(100)]
        before = resident(server)
        clients = [server.connect() for _ in range(700)]
        each = (resident(server) - before) / len(clients)
        same(clients[500].query("SELECT 1"), [[1]])
        if not t.slow and each > 4096:
            raise AssertionError(f"{each:.0f} bytes for each idle connection")
        for client in first + clients:
            client.close()


def test_idle_file_is_complete(t):
    """After a clean stop the database is one file."""
    path = t.path()
    with Server(t.weftd, path) as server, server.connect() as c:
        c.run("CREATE TABLE t(a)")
        c.run("INSERT INTO t VALUES(1)")
    folder, name = os.path.split(path)
    same([n for n in os.listdir(folder) if n.startswith(name)], [name])


if __name__ == "__main__":
    harness.main(globals())
