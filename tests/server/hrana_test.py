#!/usr/bin/env python3
"""hrana_test.py -- each point of Hrana on which clients rely, or where servers depart from the written protocol.

Method: the real weftd, asked byte by byte; one test a group of points, each with the shape that libSQL's and Turso's
clients check.  What whole clients do with it is tried by tests/clients/libsql.
"""
import base64
import json
import os
import struct
import time

import harness
from harness import same
from http_test import CLOSE, Http, Ws, code, execute, rows
from quack import Closed, Server


def pipeline(h, version, *requests, **more):
    status, headers, body = h.ask("POST", f"/v{version}/pipeline", {"requests": list(requests), **more})
    return status, headers, json.loads(body) if status == 200 else body


def cursor(h, *steps, baton=None):
    """Lines of a cursor's body, the first apart."""
    status, headers, body = h.ask("POST", "/v3/cursor", {"baton": baton, "batch": {"steps": list(steps)}})
    same((status, headers["content-type"]), (200, "text/plain"))
    same((body[-1:], b"\n\n" in body), (b"\n", False))
    lines = [json.loads(line) for line in body.decode().splitlines()]
    return lines[0], lines[1:]


def step(sql, *args, **more):
    return {"stmt": execute(sql, *args)["stmt"], **more}


# ---- pipelines ----

def test_pipeline_shape(t):
    """Baton missing or null; a result a request, in order, of its type; all run though some fail; close once or twice."""
    kinds = [execute("SELECT 1"), execute("nonsense"), {"type": "store_sql", "sql_id": 1, "sql": "SELECT 7"},
             {"type": "batch", "batch": {"steps": []}}, {"type": "sequence", "sql": ""}, {"type": "describe", "sql_id": 1},
             {"type": "close_sql", "sql_id": 1}, {"type": "close_sql", "sql_id": 99}, CLOSE, CLOSE]
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        for more in ({}, {"baton": None}):
            status, headers, answer = pipeline(h, 2, *kinds, **more)
            same((status, headers["content-type"]), (200, "application/json"))
            same((answer["baton"], answer["base_url"], len(answer["results"])), (None, None, len(kinds)))
            for request, result in zip(kinds, answer["results"]):
                same(result["type"], "error" if request == kinds[1] else "ok")
                if result["type"] == "ok":
                    same(result["response"]["type"], request["type"])
        same(pipeline(h, 3, {"type": "get_autocommit"}, CLOSE)[2]["results"][0]["response"],
             {"type": "get_autocommit", "is_autocommit": True})
        status, _, answer = pipeline(h, 2)             # Opens a stream.
        same((status, answer["results"], isinstance(answer["baton"], str)), (200, [], True))


def test_results_have_every_field(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        _, _, answer = pipeline(h, 2, execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c)"),
                                execute("INSERT INTO t(b) VALUES('x'), ('y')"), execute("SELECT a, b, 1+1 FROM t WHERE 0"),
                                execute("UPDATE t SET b = 'z' RETURNING a"), CLOSE)
        made, inserted, selected, updated, _ = [result["response"].get("result") for result in answer["results"]]
        for result in (made, inserted, selected, updated):
            same({"cols", "rows", "affected_row_count", "last_insert_rowid"} <= set(result), True)
        same((made["cols"], made["last_insert_rowid"], made["affected_row_count"]), ([], None, 0))
        same((inserted["affected_row_count"], inserted["last_insert_rowid"]), (2, "2"))
        same(selected["cols"], [{"name": "a", "decltype": "INTEGER"}, {"name": "b", "decltype": "TEXT"},
                                {"name": "1+1", "decltype": None}])
        same((selected["affected_row_count"], selected["last_insert_rowid"]), (0, None))
        same((updated["affected_row_count"], updated["last_insert_rowid"], len(updated["rows"])), (2, None, 2))


def test_protocol_errors_drop_the_stream(t):
    """400, the transaction is gone at once, and the close that a client sends afterwards does no harm."""
    bad = [execute("SELECT 1"), {"type": "batch", "batch": {"steps": [step("SELECT 1", condition={"type": "ok", "step": 0})]}}]
    with Server(t.weftd, t.path(), "--busy-timeout", "0.1") as server, Http(server) as h, server.connect() as c:
        c.run("CREATE TABLE t(a)")
        c.run("INSERT INTO t VALUES(0)")
        for requests in (bad, [{"type": "nothing"}], [CLOSE, execute("SELECT 1")], [{"type": "describe", "sql_id": 5}],
                         [{"type": "sequence", "sql": "SELECT 1", "sql_id": 1}], [{"type": "get_autocommit"}]):
            h.pipeline(execute("BEGIN IMMEDIATE"), execute("UPDATE t SET a = a + 100"))
            status, headers, _ = pipeline(h, 2, *requests, baton=h.baton)
            same((status, headers["content-type"]), (400, "application/json"))
            same(pipeline(h, 2, CLOSE, baton=h.baton)[0], 400)
            c.run("UPDATE t SET a = a + 1")            # Nobody holds the row.
        same(c.query("SELECT a FROM t"), [[6]])


def test_stored_sql_limits(t):
    """Thirty texts at least, of 5,000 characters that may be 15,000 bytes; stored and used in one pipeline."""
    text = "SELECT '" + "\u20ac" * 4990 + "'"
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        stores = [{"type": "store_sql", "sql_id": i, "sql": text} for i in range(50)]
        batch = {"type": "batch", "batch": {"steps": [{"stmt": {"sql_id": i}} for i in range(50)]}}
        results = h.pipeline(*stores, batch, {"type": "store_sql", "sql_id": 50, "sql": "SELECT 1"},
                             {"type": "store_sql", "sql_id": 1, "sql": "SELECT '" + "x" * 21000 + "'"}, CLOSE)
        same([result["type"] for result in results[:51]], ["ok"] * 51)
        same([len(one["rows"][0][0]["value"]) for one in results[50]["response"]["result"]["step_results"]], [4990] * 50)
        same((code(results[51]), code(results[52])), ("SQL_STORE_TOO_MANY", "SQL_STORE_TOO_LARGE"))


# ---- statements ----

def test_values(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        values = [{"type": "integer", "value": "9223372036854775807"}, {"type": "float", "value": 5}, {"type": "text", "value": "a\0\u20ac"},
                  {"type": "blob", "base64": "AP8"}, {"type": "blob", "base64": ""}, {"type": "null"}, {"type": "integer", "value": 7},
                  {"type": "blob", "base64": "AP8="}]
        stmt = {"sql": "SELECT " + ", ".join(f"?{i + 1}, typeof(?{i + 1})" for i in range(len(values))), "args": values}
        row = pipeline(h, 2, {"type": "execute", "stmt": stmt}, CLOSE)[2]["results"][0]["response"]["result"]["rows"][0]
        same([cell["value"] for cell in row[1::2]], ["integer", "real", "text", "blob", "blob", "null", "integer", "blob"])
        same((row[0], row[2]["value"], row[4]["value"], row[6]["base64"], row[8]["base64"], row[10], row[12]["value"], row[14]["base64"]),
             (values[0], 5.0, "a\0\u20ac", "AP8", "", {"type": "null"}, "7", "AP8"))
        for wrong in ({"type": "integer", "value": "9223372036854775808"}, {"type": "integer", "value": 1.5}, {"type": "float", "value": None},
                      {"type": "blob", "base64": "_-8"}, {"type": "odd"}):
            same(pipeline(h, 2, {"type": "execute", "stmt": {"sql": "SELECT ?", "args": [wrong]}}, CLOSE)[0], 400)
        lone = b'{"requests":[{"type":"execute","stmt":{"sql":"SELECT hex(?)","args":[{"type":"text","value":"\\ud800"}]}},{"type":"close"}]}'
        same(rows(json.loads(h.ask("POST", "/v2/pipeline", lone)[2])["results"][0]), [["EFBFBD"]])
        same(rows(h.pipeline(execute("SELECT CAST(x'41ff42' AS TEXT)"), CLOSE)[0]), [["A\ufffdB"]])


def test_infinities(t):
    """Numbers that JSON has not: as 9e999 for versions 1 and 2, null for 3; Protobuf carries them."""
    request = {"requests": [execute("SELECT 9e999, -9e999"), CLOSE]}
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        two = json.loads(h.ask("POST", "/v2/pipeline", request)[2])
        same([cell["value"] for cell in two["results"][0]["response"]["result"]["rows"][0]], [float("inf"), float("-inf")])
        three = json.loads(h.ask("POST", "/v3/pipeline", request)[2])
        same([cell["value"] for cell in three["results"][0]["response"]["result"]["rows"][0]], [None, None])
        sql = b"SELECT 9e999, -9e999"
        stmt = bytes([0x0a, len(sql)]) + sql
        body = bytes([0x12, len(stmt) + 4, 0x12, len(stmt) + 2, 0x0a, len(stmt)]) + stmt
        status, headers, answer = h.ask("POST", "/v3-protobuf/pipeline", body)
        same((status, headers["content-type"]), (200, "application/x-protobuf"))
        same((struct.pack("<d", float("inf")) in answer, struct.pack("<d", float("-inf")) in answer), (True, True))
        for protocol, wanted in (("hrana1", float("inf")), ("hrana2", float("inf")), ("hrana3", None)):
            with Ws(server, protocol) as w:
                w.ask(1, "open_stream", stream_id=1)
                answer = w.ask(2, "execute", stream_id=1, stmt={"sql": "SELECT 9e999", "want_rows": True})
                same(answer["response"]["result"]["rows"][0][0]["value"], wanted)


def test_statement_rules(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        h.pipeline(execute("CREATE TABLE t(a)"), CLOSE)
        errors = {"": "SQL_NO_STATEMENT", "-- nothing": "SQL_NO_STATEMENT", "INSERT INTO t VALUES(1); SELECT 2": "SQL_MANY_STATEMENTS",
                  "SELEC 1": "SQL_INPUT_ERROR", "SELECT nope FROM t": "SQL_INPUT_ERROR"}
        for sql, wanted in errors.items():
            same(code(h.pipeline(execute(sql), CLOSE)[0]), wanted)
        same(rows(h.pipeline(execute("SELECT count(*) FROM t ; -- the end"), CLOSE)[0]), [["0"]])
        one = {"type": "text", "value": "v"}
        same(code(h.pipeline({"type": "execute", "stmt": {"sql": "SELECT ?, :a", "args": [one], "named_args": [{"name": "a", "value": one}]}},
                             CLOSE)[0]), "ARGS_BOTH_POSITIONAL_AND_NAMED")
        for args in ([], [one, one]):
            same(code(h.pipeline({"type": "execute", "stmt": {"sql": "SELECT ?", "args": args}}, CLOSE)[0]), "ARGS_INVALID")
        for name in ("a", ":a"):
            stmt = {"sql": "SELECT :a", "named_args": [{"name": name, "value": one}], "replication_index": None, "sql_id": None}
            same(rows(h.pipeline({"type": "execute", "stmt": stmt}, CLOSE)[0]), [["v"]])
        result = h.pipeline({"type": "execute", "stmt": {"sql": "INSERT INTO t VALUES(1), (2) RETURNING a", "want_rows": False}}, CLOSE)[0]
        result = result["response"]["result"]
        same((result["rows"], len(result["cols"]), result["affected_row_count"]), ([], 1, 2))
        same(rows(h.pipeline(execute("SELECT count(*) FROM t"), CLOSE)[0]), [["2"]])


def test_errors_keep_sqlites_words(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        h.pipeline(execute("CREATE TABLE t(a UNIQUE)"), execute("INSERT INTO t VALUES(1)"), CLOSE)
        error = h.pipeline(execute("INSERT INTO t VALUES(1)"), CLOSE)[0]["error"]
        same((error["code"], error["message"], error["extended_code"]),
             ("SQLITE_CONSTRAINT", "SQLite error: UNIQUE constraint failed: t.a", "SQLITE_CONSTRAINT_UNIQUE"))


def test_batch_rules(t):
    """A skipped step is null twice; error(n) is true for it as in sqld; empty `and` and `or`; steps see earlier ones' tables."""
    ok, error = (lambda n: {"type": "ok", "step": n}), (lambda n: {"type": "error", "step": n})
    steps = [step("CREATE TABLE t(a)"), step("INSERT INTO t VALUES(1)", condition=ok(0)), step("nonsense"),
             step("SELECT 1", condition=ok(2)), step("SELECT 2", condition=error(3)), step("SELECT 3", condition={"type": "and", "conds": []}),
             step("SELECT 4", condition={"type": "or", "conds": []}), step("SELECT 5", condition={"type": "not", "cond": ok(2)}),
             step("BEGIN"), step("SELECT 6", condition={"type": "is_autocommit"}), step("ROLLBACK")]
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        result = pipeline(h, 3, {"type": "batch", "batch": {"steps": steps}}, CLOSE)[2]["results"][0]["response"]["result"]
        same([one is not None for one in result["step_results"]],
             [True, True, False, False, True, True, False, True, True, False, True])
        same([i for i, one in enumerate(result["step_errors"]) if one], [2])
        same(len(result["step_errors"]), len(steps))
        deep = ok(0)
        for _ in range(80):
            deep = {"type": "not", "cond": deep}
        same(pipeline(h, 3, {"type": "batch", "batch": {"steps": [step("SELECT 1"), step("SELECT 2", condition=deep)]}}, CLOSE)[0], 400)


def test_sequence_and_describe(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        text = ("CREATE TABLE t(a); CREATE TRIGGER tr AFTER INSERT ON t BEGIN SELECT ';'; SELECT 2; END; -- ; \n"
                "INSERT INTO t VALUES(';')")
        same(h.pipeline({"type": "sequence", "sql": text}, CLOSE)[0]["type"], "ok")
        result = h.pipeline({"type": "sequence", "sql": "INSERT INTO t VALUES(2); INSERT INTO t VALUES("}, CLOSE)[0]
        same(result["type"], "error")                  # An incomplete statement is not passed over...
        same(rows(h.pipeline(execute("SELECT count(*) FROM t"), CLOSE)[0]), [["2"]])   # ...and what came before it stays.
        found = h.pipeline({"type": "describe", "sql": "SELECT a, ?3, :x FROM t"}, CLOSE)[0]["response"]["result"]
        same([p["name"] for p in found["params"]], [None, None, "?3", ":x"])
        same((found["cols"][0]["name"], found["is_explain"], found["is_readonly"]), ("a", False, True))
        for sql, readonly in (("BEGIN", True), ("", True), ("DELETE FROM t", False)):
            same(h.pipeline({"type": "describe", "sql": sql}, CLOSE)[0]["response"]["result"]["is_readonly"], readonly)


def test_read_only_transactions(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h, server.connect() as c:
        c.run("CREATE TABLE t(a)")
        for begin in ("BEGIN TRANSACTION READONLY", "BEGIN READONLY", "begin deferred transaction readonly"):
            same(h.pipeline(execute(begin), execute("SELECT count(*) FROM t"))[0]["type"], "ok")
            c.run("INSERT INTO t VALUES(1)")
            results = h.pipeline(execute("SELECT count(*) FROM t"), execute("INSERT INTO t VALUES(2)"), execute("COMMIT"),
                                 execute("INSERT INTO t VALUES(3)"), execute("DELETE FROM t"), CLOSE, baton=h.baton)
            same((rows(results[0]), code(results[1]), results[2]["type"], results[3]["type"]), ([["0"]], "SQLITE_READONLY", "ok", "ok"))
            same(c.query("SELECT count(*) FROM t"), [[0]])


# ---- cursors ----

def test_cursor_entries(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        head, entries = cursor(h, step("CREATE TABLE t(a INTEGER PRIMARY KEY)"), step("INSERT INTO t VALUES(1), (2)"), step("SELEC"),
                               step("SELECT a FROM t"), step("SELECT 9", condition={"type": "ok", "step": 2}),
                               step("SELECT abs(-9223372036854775808)"), step("SELECT 1", condition={"type": "is_autocommit"}))
        same((isinstance(head["baton"], str), head["base_url"]), (True, None))
        kinds = [(entry["type"], entry.get("step")) for entry in entries]
        same(kinds[:9], [("step_begin", 0), ("step_end", None), ("step_begin", 1), ("step_end", None), ("step_error", 2),
                         ("step_begin", 3), ("row", None), ("row", None), ("step_end", None)])
        same([kind for kind in kinds[9:] if kind[0] != "step_begin" or kind[1] == 6],
             [("step_error", 5), ("step_begin", 6), ("row", None), ("step_end", None)])
        same(entries[3], {"type": "step_end", "affected_row_count": 2, "last_insert_rowid": "2"})
        same(entries[8]["last_insert_rowid"], None)
        same([kind for kind, _ in kinds if kind == "replication_index"], [])
        same(pipeline(h, 3, execute("SELECT 1"), CLOSE, baton=head["baton"])[0], 200)


# ---- WebSockets ----

def handshake(server, *headers):
    h = Http(server)
    h.send("GET", "/", None, ["Upgrade: WebSocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                              "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode(), *headers])
    answer = h.receive()
    h.__exit__()
    return answer


def test_subprotocols(t):
    with Server(t.weftd, t.path()) as server:
        offers = {("hrana2, hrana1",): "hrana2", ("hrana3-protobuf, hrana3, hrana2, hrana1",): "hrana3-protobuf", ("HRANA1",): "hrana1",
                  ("soap", "hrana3"): "hrana3", ("hrana1,hrana3",): "hrana3"}
        for offer, wanted in offers.items():
            status, headers, _ = handshake(server, *[f"Sec-WebSocket-Protocol: {one}" for one in offer],
                                           "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
            same((status, headers["sec-websocket-protocol"].lower(), "sec-websocket-extensions" in headers, "content-length" in headers),
                 (101, wanted, False, False))
        status, headers, _ = handshake(server)
        same((status, "sec-websocket-protocol" in headers), (101, False))
        status, _, body = handshake(server, "Sec-WebSocket-Protocol: soap")
        same((status, b"hrana3-protobuf hrana3 hrana2 hrana1" in body), (400, True))


def test_hello_and_pipelined_requests(t):
    """Requests are sent before the answer to hello; it comes first.  The whole life of a stream in one go."""
    with Server(t.weftd, t.path()) as server, Ws(server, hello=False) as w:
        frames = [{"type": "hello"}] + [{"type": "request", "request_id": i, "request": request} for i, request in enumerate([
            {"type": "store_sql", "sql_id": 1, "sql": "SELECT 'stored'"}, {"type": "open_stream", "stream_id": 1},
            {"type": "execute", "stream_id": 1, "stmt": {"sql_id": 1}}, {"type": "close_sql", "sql_id": 1},
            {"type": "close_stream", "stream_id": 1}, {"type": "open_stream", "stream_id": 1}])]
        w.send_bytes(b"".join(w.frame(1, json.dumps(frame).encode()) for frame in frames[:-1]))
        same(w.receive(), {"type": "hello_ok"})
        answers = {}
        for _ in range(5):
            answer = w.receive()
            same(answer["type"], "response_ok")
            answers[answer["request_id"]] = answer["response"]
        same(answers[2]["result"]["rows"][0][0]["value"], "stored")     # Resolved when it arrived.
        same([answers[i]["type"] for i in range(5)], ["store_sql", "open_stream", "execute", "close_sql", "close_stream"])
        w.send(frames[-1])
        same(w.receive()["request_id"], 5)                              # The id is free again.
        w.send({"type": "hello", "jwt": None})
        same(w.receive(), {"type": "hello_ok"})


def test_hundred_stored_texts(t):
    with Server(t.weftd, t.path()) as server, Ws(server) as w:
        for i in range(150):
            same(w.ask(i, "store_sql", sql_id=i, sql="SELECT " + "1" * (6000 if i == 0 else 1))["type"], "response_ok")
        same(w.ask(200, "store_sql", sql_id=200, sql="SELECT 1")["error"]["code"], "SQL_STORE_TOO_MANY")


def test_closing_handshake(t):
    """A close frame is answered by one, and the connection ends at once."""
    for payload, wanted in ((b"", 1005), (struct.pack(">H", 1000), 1000), (struct.pack(">H", 3007) + b"bye", 3007),
                            (b"\x03", 1002), (struct.pack(">H", 1005), 1002)):
        with Server(t.weftd, t.path()) as server, Ws(server) as w:
            w.send_bytes(w.frame(8, payload))
            started = time.monotonic()
            same(w.close_code(), wanted)
            same((w.http.file.read(1), time.monotonic() - started < 10), (b"", True))


def test_close_reasons_are_short(t):
    """A reason has at most 123 bytes, whatever the mistake quotes, and is whole UTF-8."""
    name = "\u20ac" * 500
    mistakes = [{"type": name}, {"type": "request", "request_id": 1, "request": {"type": name}},
                {"type": "request", "request_id": 1, "request": {"type": "execute", "stream_id": 1, "stmt": {"sql": "x", "args": [{"type": name}]}}}]
    with Server(t.weftd, t.path()) as server:
        for mistake in mistakes:
            with Ws(server) as w:
                w.send(mistake)
                opcode, payload = w.receive_frame()
                same((opcode, len(payload) <= 125), (8, True))
                payload[2:].decode()
        for frame, wanted in ((Ws.frame(1, b"{"), 1007), (Ws.frame(1, b"\xff"), 1007), (Ws.frame(2, b"{}"), 1003)):
            with Ws(server) as w:
                w.send_bytes(frame)
                same(w.close_code(), wanted)


def test_cursors_on_a_socket(t):
    with Server(t.weftd, t.path()) as server, Ws(server) as w:
        w.ask(1, "open_stream", stream_id=1)
        many = {"steps": [step("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) SELECT i FROM n")]}
        same(w.ask(2, "open_cursor", stream_id=1, cursor_id=1, batch=many)["type"], "response_ok")
        for i in range(10):
            w.request(10 + i, "fetch_cursor", cursor_id=1, max_count=1000)       # Ten at once, as the client does.
        got = [w.receive()["response"] for _ in range(10)]
        entries = [entry for one in got for entry in one["entries"]]
        same((len([e for e in entries if e["type"] == "row"]), got[-1]), (2500, {"type": "fetch_cursor", "entries": [], "done": True}))
        same(w.ask(3, "open_cursor", stream_id=1, cursor_id=2, batch=many)["error"]["code"] != "", True)   # One a stream.
        same(w.ask(4, "fetch_cursor", cursor_id=2, max_count=1)["error"]["code"], "CURSOR_NOT_OPEN")
        same(w.ask(5, "close_cursor", cursor_id=2)["type"], "response_ok")
        same(w.ask(6, "close_cursor", cursor_id=1)["type"], "response_ok")
        same(w.ask(7, "open_cursor", stream_id=1, cursor_id=2, batch=many)["type"], "response_ok")


# ---- HTTP ----

def test_types_of_refusals(t):
    """Exactly application/json with message and code, or exactly text/plain: what the client reads."""
    with Server(t.weftd, t.path(), env={"WEFT_TOKEN": "secret"}) as server, Http(server) as h:
        good = ["Authorization: Bearer secret"]
        for headers, wanted in (([], "AUTH_"), (["Authorization: Bearer no"], "AUTH_"), (["Authorization: Basic eDp5"], "AUTH_")):
            status, answer, body = h.ask("POST", "/v2/pipeline", {"requests": []}, headers)
            error = json.loads(body)
            same((status, answer["content-type"], error["code"].startswith(wanted), isinstance(error["message"], str)),
                 (401, "application/json", True, True))
        same(h.ask("POST", "/v2/pipeline", {"baton": "odd", "requests": []}, good)[1]["content-type"], "text/plain")
        status, answer, body = h.ask("POST", "/v2/pipeline", "{", good)
        same((status, answer["content-type"], "message" in json.loads(body)), (400, "application/json", True))
        for path in ("/health", "/version", "/v2", "/v3", "/v3-protobuf"):
            same(h.ask("GET", path)[0], 200)
        same(h.ask("GET", "/dump")[0], 401)


def test_bodies_and_compression(t):
    body = json.dumps({"requests": [execute("SELECT 1"), CLOSE]}).encode()
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        same("content-encoding" in h.ask("POST", "/v2/pipeline", body, ["Accept-Encoding: gzip, deflate"])[1], False)
        h.socket.sendall(b"POST /v2/pipeline HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        same(h.file.readline(), b"HTTP/1.1 100 Continue\r\n")
        same(h.file.readline(), b"\r\n")
        h.socket.sendall(body)
        same(h.receive()[0], 200)
        pieces = b"".join(b"%x\r\n%s\r\n" % (1, body[i:i + 1]) for i in range(len(body)))
        h.socket.sendall(b"POST /v2/pipeline HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n")
        same(h.receive()[0], 200)


if __name__ == "__main__":
    harness.main(globals())
