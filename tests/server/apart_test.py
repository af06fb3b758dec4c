#!/usr/bin/env python3
"""apart_test.py -- clients that share a server, a connection or a transaction's rows stay apart.

Method: the real weftd.  What one client said (token, headers, database, SQL, transaction) must not be
found in what another one, or its own next request, is given; a transaction that nobody goes on with
gives way to who waits for it; a server that stops takes leave of its sockets.
"""
import json
import select
import signal
import socket
import threading
import time

import harness
from harness import same
from http_test import CLOSE, Http, Ws, code, execute, rows
from quack import QuackError, Server

BEGIN, INSERT = execute("BEGIN IMMEDIATE"), "INSERT INTO t VALUES(?)"
HOLD = "UPDATE one SET n = n + 1"      # Whoever else wants this waits.


def table(server):
    with server.connect() as c:
        c.run("CREATE TABLE t(a)")
        c.run("CREATE TABLE one AS SELECT 1 AS n")


def waiting_writer(server, took):
    """Another client's INSERT, which waits; how long goes into `took`."""
    def write():
        with server.connect() as c:
            started = time.monotonic()
            c.run(HOLD)
            c.run(INSERT, ["other"])
            took.append(time.monotonic() - started)
    thread = threading.Thread(target=write)
    thread.start()
    return thread


def taken_away(server):
    took = []
    waiting_writer(server, took).join(60)
    same(len(took), 1)
    same(0.3 < took[0] < 30, True)


# ---- transactions that others wait for ----

def test_stale_transaction_over_http(t):
    with Server(t.weftd, t.path(), "--stale-timeout", "1", "--stream-timeout", "60", "--busy-timeout", "60") as server, \
            Http(server) as h, server.connect() as c:
        table(server)
        h.pipeline(BEGIN, execute(HOLD), execute(INSERT, "lost"))
        taken_away(server)
        batch = {"type": "batch", "batch": {"steps": [{"stmt": {"sql": "SELECT 1"}}, {"stmt": {"sql": "SELECT 2"}}]}}
        results = h.pipeline(execute(INSERT, "beside"), batch, execute("COMMIT"), baton=h.baton)
        same(code(results[0]), "TRANSACTION_TIMEOUT")
        errors = results[1]["response"]["result"]["step_errors"]
        same([error["code"] for error in errors], ["TRANSACTION_TIMEOUT"] * 2)
        same(code(results[2]), "TRANSACTION_TIMEOUT")
        same(rows(h.pipeline(execute("SELECT a FROM t"), CLOSE, baton=h.baton)[0]), [["other"]])
        h.pipeline(BEGIN, execute(HOLD), execute(INSERT, "lost"))
        taken_away(server)
        same(code(h.pipeline(execute("SELECT 1"), baton=h.baton)[0]), "TRANSACTION_TIMEOUT")
        same(h.pipeline(execute(INSERT, "new"), CLOSE, baton=h.baton)[0]["type"], "ok")    # It was told.
        same(c.query("SELECT a FROM t"), [["other"], ["other"], ["new"]])
        same([line for line in h.ask("GET", "/metrics")[2].decode().splitlines() if line.startswith("weft_stale")], ["weft_stale_transactions_total 2"])


def test_stale_transaction_on_a_websocket(t):
    """What was sent on, without waiting, must not run outside of the transaction."""
    with Server(t.weftd, t.path(), "--stale-timeout", "1", "--busy-timeout", "60") as server, Ws(server) as w:
        table(server)
        w.ask(1, "open_stream", stream_id=1)
        for end, begin_again in (("COMMIT", False), ("ROLLBACK", False), (None, True)):
            w.ask(2, "execute", stream_id=1, stmt={"sql": "BEGIN IMMEDIATE"})
            w.ask(3, "execute", stream_id=1, stmt={"sql": "INSERT INTO t VALUES('lost')"})
            w.ask(4, "execute", stream_id=1, stmt={"sql": HOLD})
            taken_away(server)
            texts = ["INSERT INTO t VALUES('beside')", "SELECT 1"] + ([end] if end else [])
            for number, sql in enumerate(texts):
                w.request(10 + number, "execute", stream_id=1, stmt={"sql": sql})
            same([w.receive()["error"]["code"] for _ in texts], ["TRANSACTION_TIMEOUT"] * len(texts))
            if begin_again:
                same(w.ask(4, "execute", stream_id=1, stmt={"sql": "BEGIN"})["type"], "response_ok")
                w.ask(5, "execute", stream_id=1, stmt={"sql": "COMMIT"})
            answer = w.ask(6, "execute", stream_id=1, stmt={"sql": "SELECT count(*) FROM t WHERE a <> 'other'"})
            same(answer["response"]["result"]["rows"][0][0]["value"], "0")


def test_stale_quack_transaction(t):
    def refused(run):
        try:
            run()
        except QuackError as error:
            return error.name
        return None
    with Server(t.weftd, t.path(), "--stale-timeout", "1", "--busy-timeout", "60") as server, server.connect() as c:
        table(server)
        handle = c.call(prepare=INSERT)[2]["handle"]
        c.run("BEGIN IMMEDIATE")
        c.call(exec=handle, params=["lost"])
        c.run(HOLD)
        taken_away(server)
        same(refused(lambda: c.call(exec=handle, params=["beside"])), "TRANSACTION_TIMEOUT")
        same(refused(lambda: c.call(script="INSERT INTO t VALUES('beside'); SELECT 1")), "TRANSACTION_TIMEOUT")
        same(refused(lambda: c.run("COMMIT")), "TRANSACTION_TIMEOUT")
        c.call(exec=handle, params=["new"])
        same(c.query("SELECT a FROM t"), [["other"], ["new"]])


def test_transactions_live_while_nobody_waits(t):
    with Server(t.weftd, t.path(), "--stale-timeout", "0.2", "--stream-timeout", "60") as server, Http(server) as h:
        table(server)
        h.pipeline(BEGIN, execute(HOLD), execute(INSERT, "mine"))
        time.sleep(1.5)
        with server.connect() as c:
            same(c.query("SELECT count(*) FROM t"), [[0]])      # A reader does not wait.
        same(h.pipeline(execute("COMMIT"), CLOSE, baton=h.baton)[0]["type"], "ok")
        same(rows(h.pipeline(execute("SELECT a FROM t"), CLOSE)[0]), [["mine"]])


def test_active_transaction_is_not_taken(t):
    """One that goes on is let alone, however old it is; who waits gets BUSY."""
    with Server(t.weftd, t.path(), "--stale-timeout", "2", "--busy-timeout", "4") as server, server.connect() as c:
        table(server)
        c.run("BEGIN IMMEDIATE")
        c.run(HOLD)
        failed = []

        def write():
            try:
                with server.connect() as other:
                    other.run(HOLD)
            except QuackError as error:
                failed.append(error.name)
        thread = threading.Thread(target=write)
        thread.start()
        while thread.is_alive():
            c.run(INSERT, ["mine"])
            time.sleep(0.02)
        thread.join()
        c.run("COMMIT")
        same(failed, ["SQLITE_BUSY"])


# ---- leave ----

def test_stopping_closes_websockets(t):
    """Idle sockets are told at once, one that works when its answer is out."""
    with Server(t.weftd, t.path(), "--drain-timeout", "60") as server, Ws(server) as idle, Ws(server, hello=False) as new, \
            Ws(server) as busy, server.connect() as c:
        busy.ask(1, "open_stream", stream_id=1)
        same(new.status, 101)
        busy.request(2, "execute", stream_id=1, stmt={
            "sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT count(*) FROM n"})
        deadline = time.monotonic() + 60
        while c.query("SELECT count(*) FROM weft_sessions WHERE state = 'running'")[0][0] < 2:
            same(time.monotonic() < deadline, True)
        server.process.send_signal(signal.SIGTERM)
        same(idle.close_code(), 1001)
        same(new.close_code(), 1001)
        same(busy.receive()["request_id"], 2)
        same(busy.close_code(), 1001)
        same(server.wait(), 0)


# ---- what was said before ----

def test_a_token_is_for_its_request(t):
    """On one connection: with the token, without, with another; also in one piece."""
    with Server(t.weftd, t.path(), env={"WEFT_TOKEN": "secret"}) as server, Http(server) as h:
        body = {"requests": [execute("SELECT 1"), CLOSE]}
        good, bad = ["Authorization: Bearer secret"], ["Authorization: Bearer secreu"]
        for _ in range(3):
            same(h.ask("POST", "/v2/pipeline", body, good)[0], 200)
            same(h.ask("POST", "/v2/pipeline", body)[0], 401)
            same(h.ask("POST", "/v2/pipeline", body, good)[0], 200)
            same(h.ask("POST", "/v2/pipeline", body, bad)[0], 401)
        for headers in (good, [], good, bad, good):
            h.send("POST", "/v2/pipeline", body, headers)
        same([h.receive()[0] for _ in range(5)], [200, 401, 200, 401, 200])
        status, _, answer = h.ask("POST", "/v2/pipeline", {"requests": [BEGIN]}, good)
        baton = json.loads(answer)["baton"]
        again = {"baton": baton, "requests": [execute("SELECT 1")]}
        same((status, h.ask("POST", "/v2/pipeline", again)[0]), (200, 401))   # A baton is no token.
        same(h.ask("POST", "/v2/pipeline", again, good)[0], 200)


def test_headers_are_of_their_request(t):
    """Database, origin, encoding and length of one request are gone with the next."""
    folder = t.path("d")
    with Server(t.weftd, folder, "--allow-origin", "http://good.example", "--dir") as server, Http(server) as h:
        make = {"requests": [execute("CREATE TABLE IF NOT EXISTS me(n)"), execute("INSERT INTO me VALUES(?)", 1), CLOSE]}
        look = {"requests": [execute("SELECT count(*) FROM sqlite_schema"), CLOSE]}
        same(h.ask("POST", "/v2/pipeline", make, ["x-namespace: a"])[0], 200)
        for headers, wanted in ((["x-namespace: a"], "1"), ([], "0"), (["x-namespace: b"], "0"), (["x-namespace: a"], "1")):
            answer = json.loads(h.ask("POST", "/v2/pipeline", look, headers)[2])
            same(answer["results"][0]["response"]["result"]["rows"][0][0]["value"], wanted)
        with_origin = h.ask("POST", "/v2/pipeline", look, ["Origin: http://good.example"])[1]
        same(with_origin["access-control-allow-origin"], "http://good.example")
        same("access-control-allow-origin" in h.ask("POST", "/v2/pipeline", look)[1], False)
        h.socket.sendall(b"POST /v2/pipeline HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                         b"%x\r\n%s\r\n0\r\n\r\n" % (len(json.dumps(look)), json.dumps(look).encode()))
        same(h.receive()[0], 200)
        same(h.ask("POST", "/v2/pipeline", look)[0], 200)


def test_sessions_are_handed_on_clean(t):
    """Engines come from a pool: settings, counters, temp tables and stored SQL stay behind."""
    with Server(t.weftd, t.path()) as server:
        table(server)
        marks = ["PRAGMA foreign_keys = on", "PRAGMA case_sensitive_like = on", "CREATE TEMP TABLE secret(x)", "BEGIN"]
        for mark in marks:
            with Http(server) as h:
                h.pipeline(execute(INSERT, "x"), execute(mark), CLOSE)
            with server.connect() as c:
                c.run(INSERT, ["x"])
                c.run(mark)
            with Ws(server) as w:
                w.ask(1, "open_stream", stream_id=1)
                w.ask(2, "store_sql", sql_id=1, sql="SELECT 'secret'")
                w.ask(3, "execute", stream_id=1, stmt={"sql": mark})
        looks = ["SELECT changes() + total_changes() + last_insert_rowid()", "SELECT count(*) FROM sqlite_temp_schema",
                 "SELECT foreign_keys FROM pragma_foreign_keys", "SELECT NOT ('a' LIKE 'A')"]
        for _ in range(4):
            with Http(server) as h, server.connect() as c, Ws(server) as w:
                w.ask(1, "open_stream", stream_id=1)
                for look in looks:
                    same(rows(h.pipeline(execute(look), CLOSE)[0]), [["0"]])
                    same(c.query(look), [[0]])
                    answer = w.ask(2, "execute", stream_id=1, stmt={"sql": look})
                    same(answer["response"]["result"]["rows"][0][0]["value"], "0")
                w.request(3, "execute", stream_id=1, stmt={"sql_id": 1})
                same(w.close_code(), 1008)


def test_sql_and_values_of_others_are_not_listed_elsewhere(t):
    """With a directory, weft_sessions of one database does not show those of another."""
    with Server(t.weftd, t.path("d"), "--dir") as server, Http(server) as h:
        h.ask("POST", "/v2/pipeline", {"requests": [execute("SELECT 'of a'")]}, ["x-namespace: a"])
        answer = h.ask("POST", "/v2/pipeline", {"requests": [execute("SELECT count(*) FROM weft_sessions WHERE sql LIKE '%of a%' "
                       "AND sql NOT LIKE '%weft_sessions%'")]}, ["x-namespace: b"])[2]
        same(json.loads(answer)["results"][0]["response"]["result"]["rows"][0][0]["value"], "0")


# ---- slow ones ----

def test_two_thousand_slow_clients(t):
    """Heads, bodies, lines and frames that never end, and clients that read nothing: others are served.

    Judged by what happened and not by the clock: others get a number of rounds done while all of the slow ones are
    there.  A server that waits for one of those serves nobody before that one's time is up, which is after the test.
    """
    count, rounds = 200 if t.slow else 2000, 60
    starts = [b"POST /v2/pipeline HTTP/1.1\r\nHost: localhost\r\nX: ", b'{"q": "SELECT ',
              b"POST /v2/pipeline HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n{", b"GET /"]
    large = (b'{"q": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) '
             b'SELECT i, hex(zeroblob(400)) FROM n"}\n')
    with Server(t.weftd, t.path(), "--request-timeout", "3000", "--write-timeout", "3000", "--drain-timeout", "0") as server, \
            server.connect() as c:
        table(server)
        host, port = server.address.rsplit(":", 1)
        slow = []
        for number in range(count):
            slow.append(socket.create_connection((host, int(port))))
            slow[-1].sendall(large if number % 100 == 0 else starts[number % 4])
        for asked in range(rounds):
            for s in slow[1 + asked % 97::97]:
                s.sendall(b"1")
            c.run(INSERT, [asked])
            with Http(server) as h:
                same(h.pipeline(execute("SELECT 1"), CLOSE)[0]["type"], "ok")
        same(c.query("SELECT count(*) FROM t"), [[rounds]])
        ends = select.poll()
        for s in slow:
            ends.register(s, select.POLLRDHUP)
        same(ends.poll(0), [])                      # None was sent away meanwhile.
        for s in slow:
            s.close()


if __name__ == "__main__":
    harness.main(globals())
