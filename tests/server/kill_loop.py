#!/usr/bin/env python3
"""kill_loop.py -- SIGKILL under load, again and again: nothing acknowledged is lost, nothing is there by half.

    tests/server/kill_loop.py --weftd build/release/weftd --rounds 50

Method: clients of all three protocols write transactions of three rows, with readers and a statement
that never ends beside them; the server is killed at a random moment and started again on the same
file; then every transaction has its three rows, every acknowledged one is there, and at most
one more of each client.  Clients must see the end of their connection, never a wrong answer.
"""
import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time

import http_test
from harness import same
from http_test import Http, Ws, execute, rows, value
from quack import Closed, QuackError, Server

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
INSERT = "INSERT INTO t VALUES(?, ?, ?)"


def quack_writer(server, who, n, note):
    with server.connect() as c:
        while True:
            c.call(q=INSERT, rows=[[who, n, part] for part in range(3)])
            note(n)
            n += 1


def http_writer(server, who, n, note):
    """An interactive transaction over several requests."""
    with Http(server) as h:
        while True:
            h.pipeline(execute("BEGIN IMMEDIATE"), execute(INSERT, who, n, 0))
            h.pipeline(execute(INSERT, who, n, 1), execute(INSERT, who, n, 2), baton=h.baton)
            result = h.pipeline(execute("COMMIT"), http_test.CLOSE, baton=h.baton)[0]
            if result["type"] == "ok":
                note(n)
            n += 1


def ws_writer(server, who, n, note):
    """A batch with conditions, as libSQL's client sends it."""
    with Ws(server) as w:
        w.ask(0, "open_stream", stream_id=1)
        while True:
            steps = [{"stmt": {"sql": "BEGIN IMMEDIATE"}}]
            steps += [{"stmt": {"sql": INSERT, "args": [value(who), value(n), value(part)]},
                       "condition": {"type": "ok", "step": part}} for part in range(3)]
            steps += [{"stmt": {"sql": "COMMIT"}, "condition": {"type": "ok", "step": 3}},
                      {"stmt": {"sql": "ROLLBACK"}, "condition": {"type": "not", "cond": {"type": "ok", "step": 4}}}]
            answer = w.ask(n, "batch", stream_id=1, batch={"steps": steps})
            same(answer["request_id"], n)
            if answer["response"]["result"]["step_results"][4] is not None:
                note(n)
            n += 1


def reader(server, *_):
    with Http(server) as h:
        while True:
            got = rows(h.pipeline(execute("SELECT count(*) % 3 FROM t"), http_test.CLOSE)[0])
            same(got, [["0"]])


def endless(server, *_):
    with server.connect() as c:
        c.query(ENDLESS)


class Round:
    def __init__(self, server, acknowledged, tried):
        self.server, self.acknowledged, self.tried, self.wrong = server, acknowledged, tried, []

    def client(self, run, who):
        try:
            run(self.server, who, self.tried.get(who, 0), lambda n: self.acknowledged[who].append(n))
        except (Closed, OSError, ValueError, KeyError, IndexError):
            pass                                     # The connection ended; maybe inside an answer.
        except (AssertionError, QuackError) as error:
            self.wrong.append(error)


def play(weftd, path, acknowledged, tried, writers, rng):
    with Server(weftd, path) as server:
        game = Round(server, acknowledged, tried)
        others = [(reader, -1), (endless, -2)]
        threads = [threading.Thread(target=game.client, args=(run, who)) for who, run in enumerate(writers)]
        threads += [threading.Thread(target=game.client, args=other) for other in others]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.05, 0.6))
        server.kill()
        for thread in threads:
            thread.join(60)
            same(thread.is_alive(), False)
        same(game.wrong, [])
    for who in acknowledged:
        tried[who] = max(tried[who], (acknowledged[who][-1] if acknowledged[who] else -1) + 2)


def check(weftd, path, acknowledged, rounds):
    started = time.monotonic()
    with Server(weftd, path) as server, server.connect() as c:
        took, there = time.monotonic() - started, {}
        for who, n, parts in c.query("SELECT who, n, count(*) FROM t GROUP BY who, n"):
            same(parts, 3)
            there.setdefault(who, set()).add(n)
        same(c.query("PRAGMA integrity_check"), [["ok"]])
    for who, numbers in acknowledged.items():
        same(set(numbers) - there.get(who, set()), set())
        same(len(there.get(who, set()) - set(numbers)) <= rounds, True)
    return took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weftd", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=9)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"# seed {options.seed}\n1..1", flush=True)
    rng, folder = random.Random(options.seed), tempfile.mkdtemp(prefix="weft-kill-")
    path = os.path.join(folder, "app.weft")
    writers = [(quack_writer, http_writer, ws_writer)[i % 3] for i in range(options.clients)]
    acknowledged = {who: [] for who in range(len(writers))}
    tried = {who: 0 for who in acknowledged}
    longest = 0
    try:
        with Server(options.weftd, path) as server, server.connect() as c:
            c.run("CREATE TABLE t(who INTEGER, n INTEGER, part INTEGER, PRIMARY KEY(who, n, part))")
        for number in range(1, options.rounds + 1):
            play(options.weftd, path, acknowledged, tried, writers, rng)
            longest = max(longest, check(options.weftd, path, acknowledged, number))
        total = sum(len(numbers) for numbers in acknowledged.values())
        same(total > 0, True)
        print(f"ok 1 - {options.rounds} kills, {total} transactions acknowledged, none lost; "
              f"longest start {longest:.2f} s", flush=True)
    except AssertionError as error:
        print(f"not ok 1 - {error}", flush=True)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
