#!/usr/bin/env python3
"""soak.py -- many idle and many busy connections for a while; slow and silent ones beside them.

    tests/server/soak.py --weftd build/release/weftd --seconds 600 --idle 1000 --busy 200

Method: idle clients of all three protocols that have worked once, busy ones that read and write, some that
send a request byte by byte, some that never read their answer.  At the end every busy client must
have gone on without an error, the idle ones must still answer, and the memory of the last two
thirds must not have grown by more than a tenth and 4 MiB.
"""
import argparse
import os
import random
import socket
import sys
import tempfile
import threading
import time

import http_test
from http_test import Http, Ws, execute, rows
from quack import Server

GROWTH = 4 << 20     # Stacks of a burst of silent clients stay with the server.
STEP = "INSERT INTO t(v) VALUES(?)"
LARGE = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, 'some text to send' FROM n"


class Quack:
    def __init__(self, server):
        self.c = server.connect()

    def read(self, key):
        return self.c.query("SELECT v FROM t WHERE id = ?", [key])

    def write(self, v):
        self.c.run(STEP, [v])


class Pipelines:
    def __init__(self, server):
        self.h = Http(server)

    def read(self, key):
        return rows(self.h.pipeline(execute("SELECT v FROM t WHERE id = ?", key), http_test.CLOSE)[0])

    def write(self, v):
        self.h.pipeline(execute(STEP, v), http_test.CLOSE)


class Sockets:
    def __init__(self, server):
        self.w = Ws(server)
        self.w.ask(1, "open_stream", stream_id=1)

    def read(self, key):
        stmt = {"sql": "SELECT v FROM t WHERE id = ?", "args": [http_test.value(key)]}
        answer = self.w.ask(2, "execute", stream_id=1, stmt=stmt)
        return [[cell.get("value") for cell in row] for row in answer["response"]["result"]["rows"]]

    def write(self, v):
        self.w.ask(3, "execute", stream_id=1, stmt={"sql": STEP, "args": [http_test.value(v)]})


KINDS = (Quack, Pipelines, Sockets)


def resident(server):
    with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def busy(server, number, end, tally, failures):
    rng = random.Random(number)
    try:
        client = KINDS[number % 3](server)
        while time.monotonic() < end:
            if rng.random() < 0.9:
                if client.read(rng.randrange(1, 1001)) == []:
                    raise AssertionError("a row is missing")
            elif rng.random() < 0.01:
                client.write(f"row {number}")
            tally[number] += 1
            time.sleep(rng.uniform(0, 0.2))
    except Exception as error:  # pylint: disable=broad-except
        failures.append(f"{KINDS[number % 3].__name__} {number}: {error!r}")


def slow(server, end):
    """A request that never comes to its end, begun again and again."""
    while time.monotonic() < end:
        try:
            with Http(server) as h:
                for byte in b"POST /v2/pipeline HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 1000:
                    h.socket.sendall(bytes([byte]))
                    time.sleep(0.3)
                    if time.monotonic() > end:
                        return
        except OSError:
            pass


def silent(server, end):
    """Asks for endless rows and reads none."""
    host, port = server.address.rsplit(":", 1)
    while time.monotonic() < end:
        with socket.create_connection((host, int(port))) as s:
            s.sendall(b'{"q": "' + LARGE.encode() + b'"}\n')
            time.sleep(min(5, max(0.1, end - time.monotonic())))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weftd", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--busy", type=int, default=200)
    options = parser.parse_args()
    failures, memory = [], []
    with tempfile.TemporaryDirectory() as folder, \
            Server(options.weftd, os.path.join(folder, "a.weft"), "--keep-alive", "7200", "--idle-timeout", "7200") as server:
        with server.connect() as c:
            c.run("CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT)")
            c.call(q=STEP, rows=[[f"value {i}"] for i in range(1000)])
        idle, before = [], resident(server)
        for i in range(options.idle):
            client = KINDS[i % 3](server)
            client.read(1)
            idle.append(client)
        time.sleep(1)
        each = (resident(server) - before) / max(1, len(idle))
        print(f"# {each / 1024:.2f} KiB an idle connection", flush=True)
        if options.idle >= 500 and each > 4096:
            failures.append(f"an idle connection takes {each:.0f} bytes")
        end, tally = time.monotonic() + options.seconds, [0] * options.busy
        threads = [threading.Thread(target=busy, args=(server, i, end, tally, failures)) for i in range(options.busy)]
        threads += [threading.Thread(target=work, args=(server, end)) for work in (slow, silent) for _ in range(10)]
        for thread in threads:
            thread.start()
        while time.monotonic() < end:
            time.sleep(options.seconds / 30)
            memory.append(resident(server))
        for thread in threads:
            thread.join()
        for client in idle:
            if client.read(1) == []:
                failures.append("an idle client got a wrong answer")
        third = len(memory) // 3
        print("# MiB: " + " ".join(f"{bytes_ / 2**20:.1f}" for bytes_ in memory), flush=True)
        if memory[-1] > 1.1 * memory[third] + GROWTH:
            failures.append(f"memory grew from {memory[third] >> 20} to {memory[-1] >> 20} MiB")
        if server.terminate() != 0:
            failures.append("the server did not end well")
    for failure in failures[:20]:
        print(f"# {failure}")
    print(f"{'not ok' if failures else 'ok'} 1 - {options.idle} idle, {options.busy} busy for {options.seconds:.0f} s: "
          f"{sum(tally)} requests, {memory[-1] >> 20} MiB at the end\n1..1")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
