#!/usr/bin/env python3
"""quack_test.py -- the Quack protocol against the real server.

Method: start weftd on a scratch database, speak to it through sockets, byte by byte where that
matters: values both ways, errors, pipelining, handles, many rows, limits, half-close, cancel,
timeouts, tokens, hostile bytes.
"""
import json
import random
import socket
import threading
import time

import harness
from harness import same
from quack import Client, Closed, QuackError, Server, blob


def fails(run, name=None, text=None):
    try:
        run()
    except QuackError as error:
        if name is not None:
            same(error.name, name)
        if text is not None and text not in error.message:
            raise AssertionError(f"{error.message!r} lacks {text!r}") from error
        return error
    raise AssertionError("no error")


def closed(client):
    """The server ends the connection and sends nothing more."""
    try:
        line = client.receive_line()
    except Closed:
        return
    raise AssertionError(f"still open: {line!r}")


def test_banner_ping_quit(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        same(c.banner["hello"], "weft")
        same(c.banner["quack"], 1)
        same(len(c.banner["key"]), 32)
        c.send(ping={"any": ["thing", 1.5, None]}, id="a")
        same(c.receive(), {"id": "a", "pong": {"any": ["thing", 1.5, None]}})
        c.send(quit=1)
        same(c.receive(), {"bye": 1})
        closed(c)


def test_values(t):
    values = [None, 0, -1, 2 ** 63 - 1, -2 ** 63, 2 ** 53 + 1, 0.5, -1e300, 1.0, "", "x",
              "ä\u0000\u20ac\U0001F600\"\\\n", blob(b""), blob(bytes(range(256)))]
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        for value in values:
            same(c.query("SELECT ?", [value]), [[value]])
        same(c.query("SELECT ?, ?", [True, False]), [[1, 0]])
        c.send_bytes(b'{"q":"SELECT ?1, typeof(?1)","params":[1.0]}\n')
        c.receive_line()
        same(c.receive_line(), b'{"row":[1.0,"real"]}')
        c.receive_line()
        c.send_bytes(b'{"q":"SELECT ?1","params":[9e999]}\n')
        c.receive_line()
        same(c.receive_line(), b'{"row":[9e999]}')
        c.receive_line()
        same(c.query("SELECT :a, $b, @c", {"a": 1, "$b": 2, "@c": 3}), [[1, 2, 3]])
        cols, rows, last = c.call(q="SELECT 1 AS one, 'x' AS \"two words\"", id=7)
        same(cols, ["one", "two words"])
        same(rows, [[1, "x"]])
        same(last, {"id": 7, "done": 1})


def test_parameter_mistakes(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        fails(lambda: c.query("SELECT ?, ?", [1]), "QUACK_PARAMS", "2 parameters, 1")
        fails(lambda: c.query("SELECT ?", [1, 2]), "QUACK_PARAMS")
        fails(lambda: c.query("SELECT ?"), "QUACK_PARAMS")
        fails(lambda: c.query("SELECT :a", {"b": 1}), "QUACK_PARAMS", "no parameter b")
        fails(lambda: c.query("SELECT ?", [[1]]), "QUACK_PARAMS")
        fails(lambda: c.query("SELECT ?", [{"base64": "*"}]), "QUACK_PARAMS", "base64")
        fails(lambda: c.query("SELECT ?", [{"base65": ""}]), "QUACK_PARAMS")
        fails(lambda: c.query("SELECT ?", "x"), "QUACK_PARAMS")
        fails(lambda: c.query("SELECT 1", limit=-1), "QUACK_REQUEST")
        same(c.query("SELECT ?", [5]), [[5]])


def test_statements(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        c.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        same(c.run("INSERT INTO t VALUES(1,'x'),(2,'y')"), {"done": 2, "changes": 2, "rowid": 2})
        same(c.run("UPDATE t SET b = 'z'")["done"], 2)
        same(c.query("SELECT a, b FROM t ORDER BY a"), [[1, "z"], [2, "z"]])
        same(c.run("SELECT a FROM t", limit=1), {"done": 1, "more": True})
        same(c.run("SELECT a FROM t", limit=2), {"done": 2})
        same(c.run("SELECT a FROM t", limit=0), {"done": 0, "more": True})
        same(c.run("DELETE FROM t WHERE a = 1")["done"], 1)
        same(c.run("BEGIN"), {"done": 0, "tx": True})
        c.run("INSERT INTO t VALUES(9,'n')")
        same(c.run("ROLLBACK"), {"done": 0})
        same(c.query("SELECT count(*) FROM t"), [[1]])
        same(c.call(script="INSERT INTO t VALUES(5,'a'); SELECT * FROM t; -- c\nDELETE FROM t;")[2]
             ["done"], 3)
        fails(lambda: c.query("SELECT 1; SELECT 2"), "QUACK_REQUEST", "script")
        fails(lambda: c.query(" -- nothing"), "QUACK_REQUEST")
        same(c.query("SELECT 1 ; -- comment"), [[1]])


def test_sql_errors(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        c.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        c.run("INSERT INTO t VALUES(1,'x')")
        error = fails(lambda: c.run("INSERT INTO t VALUES(1,'y')"), "SQLITE_CONSTRAINT_PRIMARYKEY",
                      "UNIQUE constraint failed: t.a")
        same(error.code, 1555)
        error = fails(lambda: c.query("SELECT nope FROM t"), "SQLITE_ERROR", "no such column: nope")
        same(error.error["offset"], 7)
        fails(lambda: c.query("SELEC 1"), "SQLITE_ERROR", 'near "SELEC": syntax error')
        fails(lambda: c.call(script="SELECT 1; SELECT x"), "SQLITE_ERROR", "no such column: x")
        same(c.query("SELECT count(*) FROM t"), [[1]])


def test_handles(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        c.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        insert = c.call(prepare="INSERT INTO t VALUES(?,?)")[2]
        same((insert["params"], insert["cols"]), (2, []))
        select = c.call(prepare="SELECT a, b FROM t WHERE a = ?")[2]
        same((select["params"], select["cols"]), (1, ["a", "b"]))
        for i in range(20):
            same(c.call(exec=insert["handle"], params=[i, f"v{i}"])[2]["done"], 1)
        for i in range(20):
            same(c.call(exec=select["handle"], params=[i])[1], [[i, f"v{i}"]])
        same(c.call(exec=select["handle"], params=[99])[1], [])
        same(c.call(close=insert["handle"])[2], {"done": 0})
        fails(lambda: c.call(exec=insert["handle"], params=[1, 2]), "QUACK_HANDLE")
        fails(lambda: c.call(close=12345), "QUACK_HANDLE")
        fails(lambda: c.call(exec="x"), "QUACK_HANDLE")
        fails(lambda: c.call(prepare="SELECT x FROM nowhere"), "SQLITE_ERROR", "no such table")


def test_handle_limit(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        for _ in range(256):
            c.call(prepare="SELECT 1")
        fails(lambda: c.call(prepare="SELECT 1"), "QUACK_LIMIT", "too many")
        c.call(close=7)
        c.call(prepare="SELECT 1")


def test_many_rows_of_parameters(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        c.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        rows = [[i, f"v{i}"] for i in range(1000)]
        same(c.call(q="INSERT INTO t VALUES(?,?)", rows=rows)[2]["done"], 1000)
        bad = [[2000, "x"], [2001, "y"], [5, "twice"], [2002, "z"]]
        error = fails(lambda: c.call(q="INSERT INTO t VALUES(?,?)", rows=bad),
                      "SQLITE_CONSTRAINT_PRIMARYKEY")
        same(error.error["row"], 2)
        same(c.query("SELECT count(*) FROM t"), [[1000]])       # All or nothing.
        c.run("BEGIN")
        fails(lambda: c.call(q="INSERT INTO t VALUES(?,?)", rows=bad))
        same(c.query("SELECT count(*) FROM t"), [[1002]])       # Inside: the caller decides.
        c.run("ROLLBACK")
        same(c.call(q="SELECT b FROM t WHERE a = ?", rows=[[1], [7], [2]])[1],
             [["v1"], ["v7"], ["v2"]])
        same(c.call(q="INSERT INTO t VALUES(?,?)", rows=[])[2]["done"], 0)
        fails(lambda: c.call(q="SELECT ?", rows=[[1]], params=[1]), "QUACK_REQUEST")
        error = fails(lambda: c.call(q="INSERT INTO t VALUES(?,?)", rows=[[3000, 1], [3001]]),
                      "QUACK_PARAMS")
        same(error.error["row"], 1)
        same(c.query("SELECT count(*) FROM t"), [[1000]])


def test_returning(t):
    with Server(t.weftd, t.path(), "--max-response", "64K") as server, server.connect() as c:
        c.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        _, rows, last = c.call(q="INSERT INTO t(b) VALUES('x'),('y') RETURNING a, b")
        same(rows, [[1, "x"], [2, "y"]])
        same((last["done"], last["changes"]), (2, 2))
        same(c.run("INSERT INTO t(b) VALUES('p'),('q') RETURNING a", limit=1)["more"], True)
        same(c.query("SELECT count(*) FROM t"), [[4]])
        many = [["x" * 1000] for _ in range(200)]
        fails(lambda: c.call(q="INSERT INTO t(b) VALUES(?) RETURNING b", rows=many), "QUACK_LIMIT")
        same(c.query("SELECT count(*) FROM t"), [[4]])


def test_pipelining_answers_in_order(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        lines = [json.dumps({"q": "SELECT ?", "params": [i], "id": i}) for i in range(3000)]
        c.send_bytes(("\n".join(lines) + "\n").encode())
        for i in range(3000):
            c.send  # The answers come while nothing more is sent.
            same(c.receive(), {"id": i, "cols": ["?"]})
            same(c.receive(), {"id": i, "row": [i]})
            same(c.receive(), {"id": i, "done": 1})


def test_any_split_of_the_bytes(t):
    data = b'{"q":"SELECT 1","id":1}\r\n\n  \n{"ping":2}\n{"q":"SELECT \'\xc3\xa4\'"}\n'
    with Server(t.weftd, t.path()) as server:
        for size in (1, 2, 3, 7, 1000):
            with server.connect() as c:
                for at in range(0, len(data), size):
                    c.send_bytes(data[at:at + size])
                same(c.receive()["cols"], ["1"])
                same(c.receive()["row"], [1])
                same(c.receive()["done"], 1)
                same(c.receive(), {"pong": 2})
                c.receive()
                same(c.receive()["row"], ["ä"])
                same(c.receive()["done"], 1)


def test_half_close_answers_everything(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        c.send_bytes(b'{"q":"SELECT 1"}\n{"ping":1}\n{"q":"SELECT 2"}')  # No line end, as from nc.
        c.socket.shutdown(socket.SHUT_WR)
        same(c.answer()[1], [[1]])
        same(c.receive(), {"pong": 1})
        same(c.answer()[1], [[2]])
        closed(c)


def test_not_json_closes(t):
    bad = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n{\"ping\":1}\n", b"hello\n", b"[1]\n", b"{\"q\":}\n",
           b"{\"ping\":1} {\"ping\":2}\n", b"\x00\xff\xfe\n", b"{\"ping\":1\n", b"{'ping':1}\n",
           b"{\"q\":\"" + b"\xff" * 10 + b"\n", b"[" * 100000 + b"\n"]
    with Server(t.weftd, t.path()) as server:
        for data in bad:
            with server.connect() as c:
                c.send_bytes(data)
                same(c.receive()["err"]["name"] in ("QUACK_JSON", "QUACK_LIMIT"), True)
                closed(c)
        with server.connect() as c:
            same(c.query("SELECT 1"), [[1]])


def test_wrong_requests_are_refused(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        for request in ({}, {"id": 1}, {"q": "SELECT 1", "ping": 1}, {"nope": 1}, {"q": 5},
                        {"q": "SELECT 1", "extra": 1}, {"prepare": None}, {"script": []},
                        {"cancel": 1}, {"q": "SELECT 1", "id": [1]}):
            fails(lambda r=request: c.call(**r), "QUACK_REQUEST")
        same(c.query("SELECT 1"), [[1]])


def test_deep_json_is_refused(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        c.send_bytes(b'{"ping":' + b"[" * 200 + b"]" * 200 + b"}\n")
        same(c.receive()["err"]["name"], "QUACK_LIMIT")


def test_long_lines(t):
    with Server(t.weftd, t.path(), "--max-line", "1M") as server:
        with server.connect() as c:
            text = "x" * 900000
            same(c.query("SELECT length(?)", [text]), [[900000]])
            same(c.query("SELECT ?", [text]), [[text]])
        with server.connect() as c:
            c.send_bytes(b'{"q":"SELECT 1","params":["' + b"y" * 3000000)
            same(c.receive()["err"]["name"], "QUACK_LIMIT")


def test_large_results_and_slow_readers(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c, server.connect() as other:
        sql = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) "
               "SELECT i, 'row number ' || i || ' of a long result' FROM n")
        c.send(q=sql)
        time.sleep(0.3)                      # Nobody reads: the server must wait, not gather.
        same(other.query("SELECT 1"), [[1]])
        cols, rows, last = c.answer()
        same((len(rows), last["done"], rows[-1][0]), (60000, 60000, 60000))
        same(len(cols), 2)


def test_cancel_from_another_connection(t):
    endless = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
               "SELECT max(i) FROM n")
    with Server(t.weftd, t.path()) as server, server.connect() as c, server.connect() as other:
        session, key = c.banner["session"], c.banner["key"]
        wrong = ("0" if key[0] != "0" else "1") + key[1:]
        fails(lambda: other.call(cancel={"session": session, "key": wrong}), "QUACK_CANCEL")
        fails(lambda: other.call(cancel={"session": 999999, "key": key}), "QUACK_CANCEL")
        same(other.call(cancel={"session": session, "key": key})[2], {"done": 1})  # Idle: no effect.
        same(c.query("SELECT 1"), [[1]])
        c.send(q=endless, id=1)
        time.sleep(0.3)
        other.call(cancel={"session": session, "key": key})
        error = fails(c.answer, "SQLITE_INTERRUPT", "interrupted")
        same(error.code, 9)
        same(c.query("SELECT 2"), [[2]])


def test_statement_timeout(t):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with Server(t.weftd, t.path(), "--statement-timeout", "1") as server, server.connect() as c:
        started = time.monotonic()
        fails(lambda: c.query(endless), "SQLITE_INTERRUPT", "time limit")
        same(0.8 < time.monotonic() - started < 10, True)
        same(c.query("SELECT 1"), [[1]])


def test_memory_caps(t):
    """Each level: the error names it, the connection goes on, and what was held is free again."""
    large = "SELECT length(hex(zeroblob(3000000)))"
    for option, text in (("--max-statement-memory", "one statement may use 2097152 bytes"),
                         ("--max-session-memory", "one session may use 2097152 bytes"),
                         ("--max-database-memory", "one database may use 2097152 bytes"),
                         ("--max-memory", "out of memory")):
        with Server(t.weftd, t.path(), option, "2M") as server, server.connect() as c:
            for _ in range(3):
                fails(lambda: c.query(large), "SQLITE_NOMEM", text)
                same(c.query("SELECT length(hex(zeroblob(100000)))"), [[200000]])
        with Server(t.weftd, t.path(), option, "64M") as server, server.connect() as c:
            same(c.query(large), [[6000000]])


def test_reset_ends_the_statement(t):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with Server(t.weftd, t.path()) as server:
        c = server.connect()
        c.send(q=endless)
        time.sleep(0.2)
        c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        c.close()                                    # RST
        started = time.monotonic()
        same(server.terminate(), 0)                  # Would wait for the statement otherwise.
        same(time.monotonic() - started < 8, True)


def test_vanished_client_is_rolled_back(t):
    with Server(t.weftd, t.path()) as server, server.connect() as other:
        other.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        other.run("INSERT INTO t VALUES(1, 'old')")
        c = server.connect()
        c.run("BEGIN")
        c.run("UPDATE t SET b = 'new' WHERE a = 1")
        c.close()
        other.run("UPDATE t SET b = 'other' WHERE a = 1")    # Waits for the rollback, no longer.
        same(other.query("SELECT b FROM t"), [["other"]])


def test_idle_limits(t):
    with Server(t.weftd, t.path(), "--idle-timeout", "1", "--transaction-timeout", "2") as server:
        with server.connect() as c:
            same(c.receive()["err"]["name"], "QUACK_IDLE")
            closed(c)
        with server.connect() as c:
            c.run("BEGIN")
            started = time.monotonic()
            error = c.receive()["err"]
            same((error["name"], "transaction" in error["message"]), ("QUACK_IDLE", True))
            same(time.monotonic() - started > 1.5, True)


def test_connection_limit(t):
    with Server(t.weftd, t.path(), "--max-connections", "3") as server:
        clients = [server.connect() for _ in range(3)]
        with server.connect() as c:
            same(c.banner["err"]["name"], "QUACK_LIMIT")
        clients.pop().close()
        deadline = time.monotonic() + 20
        while True:
            with server.connect() as c:
                if "hello" in c.banner:
                    same(c.query("SELECT 1"), [[1]])
                    break
            same(time.monotonic() < deadline, True)
        for c in clients:
            c.close()


def test_token(t):
    with Server(t.weftd, t.path(), env={"WEFT_TOKEN": "open sesame"}) as server:
        with server.connect() as c:
            same(c.banner["token"], "required")
            fails(lambda: c.query("SELECT 1"), "QUACK_AUTH")
            same(c.call(ping=1)[2], {"pong": 1})
            same(c.call(token="open sesame")[2], {"done": 0})
            same(c.query("SELECT 1"), [[1]])
        for wrong in ("open sesam", "open sesame ", "", "x" * 1000):
            with server.connect() as c:
                fails(lambda w=wrong: c.call(token=w), "QUACK_AUTH")
                closed(c)


def test_other_addresses_need_a_token(t):
    import subprocess
    for address in ("0.0.0.0:0", "[::]:0"):
        done = subprocess.run([t.weftd, "--create", "--listen", address, t.path()],
                              capture_output=True, text=True, timeout=60, check=False)
        same(done.returncode, 1)
        same("token" in done.stderr, True)


def test_unix_socket(t):
    path = t.path("socket")
    with Server(t.weftd, t.path(), "--unix", path) as server:
        same(server.addresses[1], f"unix:{path}")
        with server.connect(1) as c:
            same(c.query("SELECT 1"), [[1]])


def test_files_are_out_of_reach(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        for sql in ("ATTACH '/tmp/x' AS x", "/**/ attach '/tmp/x' as x", "-- c\nATTACH 'x' AS x",
                    "VACUUM INTO '/tmp/x'", "VACUUM main INTO '/tmp/x'", "; attach 'x' as x"):
            fails(lambda s=sql: c.query(s), "SQLITE_AUTH")
            fails(lambda s=sql: c.call(script="SELECT 1;" + s), "SQLITE_AUTH")


def test_many_clients_write(t):
    clients, each = 8, 25 if t.slow else 100
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        c.run("CREATE TABLE t(who INTEGER, n INTEGER, PRIMARY KEY(who, n))")
        c.run("CREATE TABLE total(id INTEGER PRIMARY KEY, n INTEGER)")
        c.run("INSERT INTO total VALUES(1, 0)")
        errors = []

        def work(who):
            try:
                with server.connect() as mine:
                    for n in range(each):
                        mine.run("INSERT INTO t VALUES(?,?)", [who, n])
                        mine.run("UPDATE total SET n = n + 1 WHERE id = 1")
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)

        threads = [threading.Thread(target=work, args=(who,)) for who in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        same(errors, [])
        same(c.query("SELECT count(*) FROM t"), [[clients * each]])
        same(c.query("SELECT n FROM total"), [[clients * each]])


def mutate(rng, line):
    """One of a few things that go wrong with a request on its way."""
    data = bytearray(line)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data)) if data else 0
        kind = rng.randrange(6)
        if kind == 0 and data:
            data[at] = rng.randrange(256)
        elif kind == 1 and data:
            del data[at:at + rng.randrange(1, 9)]
        elif kind == 2:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 5)))
        elif kind == 3:
            data[at:at] = rng.choice([b"{", b"}", b"[", b"]", b'"', b"\\u0000", b"1e999", b"-", b"null",
                                      b"99999999999999999999", b",", b":", b"\\ud800"])
        elif kind == 4 and data:
            data[at:at] = data[:rng.randrange(len(data))]
        else:
            data = data[:at]
    return bytes(data).replace(b"\n", b" ")


def test_mutated_requests(t):
    """Whatever a line looks like: an answer or a closed connection, and the server lives on."""
    seed = int(time.time())
    print(f"# seed {seed}")
    rng = random.Random(seed)
    lines = [json.dumps(r).encode() for r in (
        {"q": "SELECT ?1, :n", "params": [1, {"base64": "QUJD"}], "limit": 3, "id": "x"},
        {"q": "INSERT INTO t VALUES(?,?)", "rows": [[1, "a"], [2, None], [3.5, "\u20ac"]]},
        {"prepare": "SELECT b FROM t WHERE a = ?"}, {"exec": 1, "params": [7]},
        {"script": "BEGIN; INSERT INTO t VALUES(9, 'x'); ROLLBACK; SELECT 1"},
        {"cancel": {"session": 1, "key": "00112233445566778899aabbccddeeff"}},
        {"q": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<9) SELECT * FROM n"},
        {"ping": [[[[1]]]]}, {"close": 1}, {"token": "x"})]
    with Server(t.weftd, t.path(), "--statement-timeout", "5") as server, server.connect() as c:
        c.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        for _ in range(60 if t.slow else 200):
            with server.connect() as bad:
                bad.send_bytes(b"".join(mutate(rng, rng.choice(lines)) + b"\n"
                                        for _ in range(rng.randrange(1, 12))))
                bad.socket.shutdown(socket.SHUT_WR)
                try:
                    while True:
                        json.loads(bad.receive_line())      # Whatever it is, it is whole.
                except Closed:
                    pass
        same(c.query("SELECT 1"), [[1]])
        same(server.process.poll(), None)


def test_slow_loris_does_not_stop_others(t):
    with Server(t.weftd, t.path()) as server:
        lazy = []
        for i in range(100):
            s = socket.create_connection(server.address.rsplit(":", 1), timeout=30)
            s.sendall(b'{"q":"SEL'[:i % 10])
            lazy.append(s)
        with server.connect() as c:
            for i in range(50):
                same(c.query("SELECT ?", [i]), [[i]])
        for s in lazy:
            s.close()


if __name__ == "__main__":
    harness.main(globals())
