#!/usr/bin/env python3
"""http_test.py -- Hrana over HTTP and WebSocket, byte by byte: streams, batons, limits, hostility.

Method: the real weftd, and clients that write the bytes themselves, whole and in pieces.  What npm's
clients do is tried by tests/clients/libsql; here is what no good client does.
"""
import base64
import hashlib
import json
import os
import random
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import harness
from harness import same
from quack import Closed, QuackError, Server, wait_running


class Http:
    """One HTTP connection."""
    def __init__(self, server, which=0, context=None):
        host, port = server.addresses[which].rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, method, path, body=None, headers=(), host="localhost"):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        head = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
        if body is not None:
            head.append(f"Content-Length: {len(body)}")
        self.socket.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + (body or b""))

    def receive(self):
        line = self.file.readline()
        if not line:
            raise Closed("end of stream")
        status, headers = int(line.split()[1]), {}
        for line in iter(self.file.readline, b"\r\n"):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        if status == 101:
            return status, headers, b""
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while (size := int(self.file.readline(), 16)) > 0:
                body += self.file.read(size)
                self.file.read(2)
            self.file.readline()
        else:
            body = self.file.read(int(headers.get("content-length", 0)))
        return status, headers, body

    def ask(self, method, path, body=None, headers=(), host="localhost"):
        self.send(method, path, body, headers, host)
        return self.receive()

    def pipeline(self, *requests, baton=None, version=2):
        """The results; the baton is kept."""
        status, _, body = self.ask("POST", f"/v{version}/pipeline",
                                   {"baton": baton, "requests": list(requests)})
        if status != 200:
            raise QuackError({"name": str(status), "message": body.decode()})
        answer = json.loads(body)
        self.baton = answer["baton"]
        return answer["results"]


def value(v):
    if v is None:
        return {"type": "null"}
    if isinstance(v, int):
        return {"type": "integer", "value": str(v)}
    return {"type": "text", "value": v}


def execute(sql, *args):
    return {"type": "execute", "stmt": {"sql": sql, "args": [value(a) for a in args]}}


CLOSE = {"type": "close"}


def rows(result):
    same(result["type"], "ok")
    return [[cell.get("value") for cell in row] for row in result["response"]["result"]["rows"]]


def code(result):
    same(result["type"], "error")
    return result["error"]["code"]


class Ws:
    """A WebSocket with Hrana in JSON."""
    def __init__(self, server, protocol="hrana3", hello=True, headers=()):
        self.http = Http(server)
        key = base64.b64encode(os.urandom(16)).decode()
        more = [f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []
        self.http.send("GET", "/", None, ["Upgrade: websocket", "Connection: keep-alive, Upgrade",
                                          f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13",
                                          *more, *headers])
        self.status, self.headers, self.body = self.http.receive()
        if self.status == 101:
            accept = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
            same(self.headers["sec-websocket-accept"], base64.b64encode(accept).decode())
            if hello:
                self.send({"type": "hello"})
                same(self.receive(), {"type": "hello_ok"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.__exit__()

    @staticmethod
    def frame(opcode, payload, fin=True, mask=True):
        head = bytes([(0x80 if fin else 0) | opcode])
        length = len(payload)
        bit = 0x80 if mask else 0
        if length < 126:
            head += bytes([bit | length])
        elif length < 65536:
            head += bytes([bit | 126]) + struct.pack(">H", length)
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", length)
        if not mask:
            return head + payload
        key = os.urandom(4)
        return head + key + bytes(b ^ key[i & 3] for i, b in enumerate(payload))

    def send_bytes(self, data):
        self.http.socket.sendall(data)

    def send(self, message):
        self.send_bytes(self.frame(1, json.dumps(message).encode()))

    def request(self, request_id, kind, **more):
        self.send({"type": "request", "request_id": request_id, "request": {"type": kind, **more}})

    def receive_frame(self):
        head = self.http.file.read(2)
        if len(head) < 2:
            raise Closed("end of stream")
        length = head[1] & 127
        if length == 126:
            length = struct.unpack(">H", self.http.file.read(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self.http.file.read(8))[0]
        return head[0] & 15, self.http.file.read(length)

    def receive(self):
        opcode, payload = self.receive_frame()
        same(opcode, 1)
        return json.loads(payload)

    def ask(self, request_id, kind, **more):
        self.request(request_id, kind, **more)
        return self.receive()

    def close_code(self):
        """The code of the close frame that comes next, or after answers."""
        while True:
            opcode, payload = self.receive_frame()
            if opcode == 8:
                same(len(payload) <= 125, True)
                return struct.unpack(">H", payload[:2])[0] if payload else 1005


# ---- HTTP ----

def test_paths_and_methods(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        for path in ("/v1", "/v2", "/v3", "/v3-protobuf", "/health", "/version", "/"):
            same(h.ask("GET", path)[0], 200)
        same(h.ask("GET", "/nothing")[0], 404)
        status, headers, _ = h.ask("GET", "/v2/pipeline")
        same((status, headers["allow"]), (405, "POST"))
        same(h.ask("POST", "/health", "")[0], 405)


def test_head_has_no_body(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        h.send("HEAD", "/version")
        h.send("GET", "/health")
        same(int(h.file.readline().split()[1]), 200)
        while h.file.readline() != b"\r\n":
            pass
        same(h.receive()[0], 200)


def test_pieces_and_pipelining(t):
    """One byte at a time, and many requests at once."""
    body = json.dumps({"requests": [execute("SELECT ?", 7), CLOSE]}).encode()
    request = (b"POST /v2/pipeline HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
               + str(len(body)).encode() + b"\r\n\r\n" + body)
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        for byte in request:
            h.socket.sendall(bytes([byte]))
        same(rows(json.loads(h.receive()[2])["results"][0]), [["7"]])
        h.socket.sendall(request * 50)
        for _ in range(50):
            same(rows(json.loads(h.receive()[2])["results"][0]), [["7"]])


def test_connection_close_and_http_10(t):
    with Server(t.weftd, t.path()) as server:
        with Http(server) as h:
            h.send("GET", "/version", None, ["Connection: close"])
            status, headers, _ = h.receive()
            same((status, headers["connection"]), (200, "close"))
            same(h.file.read(), b"")
        with Http(server) as h:
            h.socket.sendall(b"GET /version HTTP/1.0\r\n\r\n")
            same(h.receive()[0], 200)
            same(h.file.read(), b"")
        with Http(server) as h:
            body = json.dumps({"batch": {"steps": [{"stmt": {"sql": "SELECT 1"}}]}})
            h.socket.sendall(f"POST /v3/cursor HTTP/1.0\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
                             f"{body}".encode())
            status, headers, _ = h.receive()
            same((status, "transfer-encoding" in headers), (200, False))
            same(len(h.file.read().splitlines()), 4)


def test_bad_requests(t):
    with Server(t.weftd, t.path(), "--max-body", "1000") as server:
        for text, status in ((b"GET / HTTP/1.1\r\n\r\n", 400), (b"GARBAGE\r\n\r\n", 400),
                             (b"GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n", 400),
                             (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n", 413),
                             (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40000 + b"\r\n\r\n", 431)):
            with Http(server) as h:
                h.socket.sendall(text)
                same(h.receive()[0], status)
                same(h.file.read(), b"")
        with Http(server) as h:
            for body in ("", "{", "[]", "{}", '{"requests": 5}', '{"requests": [{"type": "x"}]}',
                         '{"baton": 5, "requests": []}', "\xff"):
                same(h.ask("POST", "/v2/pipeline", body.encode("latin-1"))[0], 400)
            same(h.ask("POST", "/v2/pipeline", {"requests": [{"type": "get_autocommit"}]})[0], 400)
            same(h.ask("POST", "/v3/pipeline", {"requests": [{"type": "get_autocommit"}]})[0], 200)


def test_web_pages_are_kept_out(t):
    with Server(t.weftd, t.path(), "--allow-origin", "http://good.example") as server, Http(server) as h:
        query = {"requests": [execute("SELECT 1"), CLOSE]}
        same(h.ask("POST", "/v2/pipeline", query, ["Origin: http://evil.example"])[0], 403)
        same(h.ask("POST", "/v2/pipeline", query, host="evil.example")[0], 403)
        same(h.ask("OPTIONS", "/v2/pipeline", None, ["Origin: http://evil.example"])[0], 403)
        status, headers, _ = h.ask("POST", "/v2/pipeline", query, ["Origin: http://good.example"])
        same((status, headers["access-control-allow-origin"]), (200, "http://good.example"))
        status, headers, _ = h.ask("OPTIONS", "/v2/pipeline", None, [
            "Origin: http://good.example", "Access-Control-Request-Method: POST",
            "Access-Control-Request-Headers: content-type"])
        same((status, headers["access-control-allow-headers"]), (200, "content-type"))
        same("access-control-allow-origin" in h.ask("POST", "/v2/pipeline", query)[1], False)
        with Ws(server, headers=["Origin: http://evil.example"], hello=False) as w:
            same(w.status, 403)


def test_results_in_order_and_close(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        results = h.pipeline(execute("CREATE TABLE t(a INTEGER PRIMARY KEY)"), execute("INSERT INTO t VALUES(1)"),
                             execute("INSERT INTO t VALUES(1)"), execute("SELECT count(*) FROM t"), CLOSE, CLOSE)
        same([r["type"] for r in results], ["ok", "ok", "error", "ok", "ok", "ok"])
        same((code(results[2]), rows(results[3]), h.baton), ("SQLITE_CONSTRAINT", [["1"]], None))
        same(results[2]["error"]["extended_code"], "SQLITE_CONSTRAINT_PRIMARYKEY")
        status, _, _ = h.ask("POST", "/v2/pipeline", {"requests": [CLOSE, execute("SELECT 1")]})
        same(status, 400)


def test_batons(t):
    with Server(t.weftd, t.path(), "--stream-timeout", "1") as server, Http(server) as h, Http(server) as other:
        h.pipeline(execute("CREATE TABLE t(a)"), CLOSE)
        h.pipeline(execute("BEGIN"), execute("INSERT INTO t VALUES(1)"))
        first = h.baton
        same(rows(other.pipeline(execute("SELECT count(*) FROM t"), baton=first)[0]), [["1"]])   # Another connection.
        second = other.baton
        same(second != first, True)
        for baton, text in ((first, "already been used"), ("x" * 48, "invalid"), ("0" * 48, "invalid"), ("", "invalid")):
            status, headers, body = h.ask("POST", "/v2/pipeline", {"baton": baton, "requests": []})
            same((status, headers["content-type"], text in body.decode()), (400, "text/plain", True))
        h.pipeline(baton=second)                                   # Touched only.
        time.sleep(2.5)
        status, _, body = h.ask("POST", "/v2/pipeline", {"baton": h.baton, "requests": []})
        same((status, json.loads(body)["code"]), (400, "STREAM_EXPIRED"))
        same(rows(h.pipeline(execute("SELECT count(*) FROM t"), CLOSE)[0]), [["0"]])


def test_batch_conditions_and_read_only(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        def step(sql, cond=None):
            return {"stmt": {"sql": sql}, "condition": cond}
        steps = [step("BEGIN TRANSACTION READONLY"), step("CREATE TABLE t(a)"),
                 step("SELECT 'skipped'", {"type": "ok", "step": 1}),
                 step("SELECT 'run'", {"type": "and", "conds": [{"type": "error", "step": 1}, {"type": "not", "cond": {
                     "type": "is_autocommit"}}]}),
                 step("ROLLBACK"), step("CREATE TABLE t(a)", {"type": "is_autocommit"})]
        result = h.pipeline({"type": "batch", "batch": {"steps": steps}}, CLOSE, version=3)[0]["response"]["result"]
        same([r is not None for r in result["step_results"]], [True, False, False, True, True, True])
        same([e and e["code"] for e in result["step_errors"]], [None, "SQLITE_READONLY", None, None, None, None])
        same(h.ask("POST", "/v2/pipeline", {"requests": [{"type": "batch", "batch": {"steps": [
            step("SELECT 1", {"type": "ok", "step": 0})]}}]})[0], 400)


def test_want_rows_and_values(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        stmt = {"sql": "SELECT 1 AS a", "want_rows": False}
        result = h.pipeline({"type": "execute", "stmt": stmt}, CLOSE)[0]["response"]["result"]
        same((result["rows"], result["cols"]), ([], [{"name": "a", "decltype": None}]))
        _, _, body = h.ask("POST", "/v2/pipeline", {"requests": [execute("SELECT 9e999, x'00', 0.1"), CLOSE]})
        same(b"9e999" in body and b'"base64":"AA"' in body and b"0.1" in body, True)
        _, _, body = h.ask("POST", "/v3/pipeline", {"requests": [execute("SELECT -9e999"), CLOSE]})
        same(b'{"type":"float","value":null}' in body, True)


def test_interleaved_streams_stay_apart(t):
    """Batons of many streams, in random order, on a few connections: nobody sees another's work."""
    rng, count = random.Random(5), 8 if t.slow else 30
    with Server(t.weftd, t.path()) as server:
        conns = [Http(server) for _ in range(4)]
        conns[0].pipeline(execute("CREATE TABLE t(a INTEGER PRIMARY KEY, who)"), CLOSE)
        batons, seen = {}, {}
        for who in range(count):
            h = rng.choice(conns)
            h.pipeline(execute("BEGIN"), execute("CREATE TEMP TABLE mine(who)"), execute("INSERT INTO mine VALUES(?)", who))
            batons[who], seen[who] = h.baton, 1
        for _ in range(count * 10):
            who, h = rng.randrange(count), rng.choice(conns)
            result = h.pipeline(execute("INSERT INTO t VALUES(NULL, ?) RETURNING who", who),
                                execute("SELECT DISTINCT who FROM mine"),
                                execute("SELECT count(*), min(who), max(who) FROM t"), baton=batons[who])
            batons[who] = h.baton
            same((rows(result[0]), rows(result[1]), rows(result[2])),
                 ([[str(who)]], [[str(who)]], [[str(seen[who]), str(who), str(who)]]))
            seen[who] += 1
        for h in conns:
            h.__exit__()


def test_stored_sql(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        stored = {"type": "execute", "stmt": {"sql_id": 3}}
        results = h.pipeline({"type": "store_sql", "sql_id": 3, "sql": "SELECT 1"}, stored,
                             {"type": "store_sql", "sql_id": 4, "sql": "x" * 30000})
        same((rows(results[1]), code(results[2])), ([["1"]], "SQL_STORE_TOO_LARGE"))
        baton = h.baton
        same(h.ask("POST", "/v2/pipeline", {"baton": baton, "requests": [
            {"type": "close_sql", "sql_id": 3}, stored]})[0], 400)
        results = h.pipeline(*[{"type": "store_sql", "sql_id": i, "sql": "SELECT 1"} for i in range(51)], CLOSE)
        same((results[49]["type"], code(results[50])), ("ok", "SQL_STORE_TOO_MANY"))


def test_cursor_cut_short(t):
    """A client that goes away in the middle of a cursor holds nothing."""
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        h.pipeline(execute("CREATE TABLE t(a)"), CLOSE)
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
        with Http(server) as gone:
            gone.send("POST", "/v3/cursor", {"batch": {"steps": [
                {"stmt": {"sql": "BEGIN IMMEDIATE"}}, {"stmt": {"sql": "INSERT INTO t VALUES(1)"}},
                {"stmt": {"sql": endless}}]}})
            same(len(gone.file.read(100000)), 100000)
        for _ in range(100):
            if rows(h.pipeline(execute("SELECT count(*) FROM weft_sessions WHERE state = 'running'"), CLOSE)[0]) == [["1"]]:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("the cursor still runs")
        same(rows(h.pipeline(execute("SELECT count(*) FROM t"), CLOSE)[0]), [["0"]])


def test_cursor_lines(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        status, _, body = h.ask("POST", "/v3/cursor", {"batch": {"steps": [
            {"stmt": {"sql": "CREATE TABLE t(a INTEGER PRIMARY KEY)"}},
            {"stmt": {"sql": "INSERT INTO t VALUES(1),(2) RETURNING a"}},
            {"stmt": {"sql": "SELECT * FROM missing"}},
            {"stmt": {"sql": "SELECT 1"}, "condition": {"type": "ok", "step": 2}},
            {"stmt": {"sql": "SELECT a FROM t"}}]}})
        lines = [json.loads(line) for line in body.decode().split("\n")[:-1]]
        same(status, 200)
        same([line["type"] for line in lines[1:]], ["step_begin", "step_end", "step_begin", "row", "row", "step_end",
                                                    "step_error", "step_begin", "row", "row", "step_end"])
        same((lines[6]["affected_row_count"], lines[6]["last_insert_rowid"], lines[7]["step"]), (2, "2", 2))
        same(rows(h.pipeline(execute("SELECT count(*) FROM t"), baton=lines[0]["baton"])[0]), [["2"]])


def test_response_limit(t):
    with Server(t.weftd, t.path(), "--max-response", "100K") as server, Http(server) as h:
        results = h.pipeline(execute("SELECT zeroblob(200000)"), execute("SELECT 1"), CLOSE)
        same((code(results[0]), rows(results[1])), ("RESPONSE_TOO_LARGE", [["1"]]))


def test_budget_for_what_is_held(t):
    """Long requests and answers share one budget; who finds it empty is told, others go on."""
    with Server(t.weftd, t.path(), "--max-held", "1M") as server, Http(server) as h:
        body = json.dumps({"requests": [execute("SELECT length(?)", "x" * 500000), CLOSE]})
        same(h.ask("POST", "/v2/pipeline", body)[0], 503)
        same(code(h.pipeline(execute("SELECT zeroblob(2000000)"), CLOSE)[0]), "RESPONSE_TOO_LARGE")
        with Http(server) as big:
            big.send("POST", "/v2/pipeline", "x" * 3000000)
            try:
                same(big.receive()[0], 503)
            except OSError:
                pass
        with server.connect() as c:
            c.send_bytes(b'{"q": "' + b"x" * 3000000)
            try:
                same(c.receive()["err"]["name"], "QUACK_LIMIT")
            except (OSError, Closed):
                pass
        def held():
            text = h.ask("GET", "/metrics")[2].decode()
            return [line for line in text.splitlines() if line.startswith("weft_held_bytes")]
        for _turn in range(20):
            for _ in range(200):                       # The others may still be taking their leave.
                if held() == ["weft_held_bytes 0"]:
                    break
                time.sleep(0.05)
            same(rows(h.pipeline(execute("SELECT length(?)", "x" * 100000), CLOSE)[0]), [["100000"]])
        same(held(), ["weft_held_bytes 0"])


def test_statement_timeout_over_http(t):
    with Server(t.weftd, t.path(), "--statement-timeout", "1") as server, Http(server) as h:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        results = h.pipeline(execute(endless), execute("SELECT 1"), CLOSE)
        same((code(results[0]), rows(results[1])), ("SQLITE_INTERRUPT", [["1"]]))


def test_slow_loris(t):
    """Connections that send their request a byte at a time do not stop others, and end."""
    with Server(t.weftd, t.path(), "--request-timeout", "2") as server, Http(server) as h:
        slow = [Http(server) for _ in range(50 if t.slow else 300)]
        for conn in slow:
            conn.socket.sendall(b"POST /v2/pipeline HTTP/1.1\r\nHo")
        same(rows(h.pipeline(execute("SELECT 1"), CLOSE)[0]), [["1"]])
        for conn in slow:
            conn.socket.settimeout(30)
            status, _, _ = conn.receive()
            same(status, 408)
            conn.__exit__()
        same(rows(Http(server).pipeline(execute("SELECT 1"), CLOSE)[0]), [["1"]])


# ---- WebSocket ----

def test_handshake(t):
    with Server(t.weftd, t.path()) as server:
        with Ws(server, None, hello=False) as w:
            same((w.status, "sec-websocket-protocol" in w.headers, "content-length" in w.headers), (101, False, False))
        with Ws(server, "chat, HRANA2, hrana1", hello=False) as w:
            same((w.status, w.headers["sec-websocket-protocol"]), (101, "hrana2"))
        with Ws(server, "chat", hello=False) as w:
            same((w.status, b"hrana3-protobuf" in w.body), (400, True))


def test_streams_and_errors(t):
    with Server(t.weftd, t.path()) as server, Ws(server) as w:
        same(w.ask(1, "open_stream", stream_id=0)["type"], "response_ok")
        answer = w.ask(2, "execute", stream_id=0, stmt={"sql": "SELECT 5"})
        same((answer["request_id"], answer["response"]["result"]["rows"]), (2, [[{"type": "integer", "value": "5"}]]))
        answer = w.ask(3, "execute", stream_id=0, stmt={"sql": "SELECT * FROM missing"})
        same((answer["type"], answer["error"]["code"]), ("response_error", "SQLITE_UNKNOWN"))
        same(w.ask(4, "store_sql", sql_id=0, sql="SELECT 6")["type"], "response_ok")
        # Resolved on arrival: closed right behind.
        w.request(5, "execute", stream_id=0, stmt={"sql_id": 0})
        w.request(6, "close_sql", sql_id=0)
        got = {a["request_id"]: a for a in (w.receive(), w.receive())}
        same(got[5]["response"]["result"]["rows"], [[{"type": "integer", "value": "6"}]])
        same(w.ask(7, "open_cursor", stream_id=0, cursor_id=0, batch={"steps": [{"stmt": {"sql": "SELECT 1"}}]})["type"],
             "response_ok")
        got = w.ask(8, "fetch_cursor", cursor_id=0, max_count=2)["response"]
        same(([e["type"] for e in got["entries"]], got["done"]), (["step_begin", "row"], False))
        got = w.ask(9, "fetch_cursor", cursor_id=0, max_count=1000)["response"]
        same(([e["type"] for e in got["entries"]], got["done"]), (["step_end"], True))
        same(w.ask(10, "close_cursor", cursor_id=0)["type"], "response_ok")
        same(w.ask(11, "close_stream", stream_id=0)["type"], "response_ok")
        same(w.ask(12, "open_stream", stream_id=0)["type"], "response_ok")
        w.send_bytes(Ws.frame(9, b"are you there"))
        same(w.receive_frame(), (10, b"are you there"))
        w.send_bytes(Ws.frame(8, struct.pack(">H", 1000) + b"bye"))
        same(w.close_code(), 1000)
        same(w.http.file.read(), b"")


def test_fragments(t):
    with Server(t.weftd, t.path()) as server, Ws(server) as w:
        text = json.dumps({"type": "request", "request_id": 1, "request": {"type": "open_stream", "stream_id": 1}}).encode()
        data = (Ws.frame(1, text[:10], False) + Ws.frame(9, b"") + Ws.frame(0, text[10:20], False)
                + Ws.frame(0, text[20:], True))
        for byte in data:
            w.send_bytes(bytes([byte]))
        same(w.receive_frame(), (10, b""))
        same(w.receive()["type"], "response_ok")


def test_protocol_errors_close(t):
    request = {"type": "request", "request_id": 1, "request": {"type": "open_stream", "stream_id": 1}}
    with Server(t.weftd, t.path()) as server:
        with Ws(server, hello=False) as w:
            w.send(request)
            same(w.close_code(), 1008)
        for data, wanted in ((Ws.frame(1, b"{"), 1007), (Ws.frame(1, b"\xff"), 1007), (Ws.frame(2, b"x"), 1003),
                             (Ws.frame(1, b"{}", mask=False), 1002), (Ws.frame(0, b"x"), 1002),
                             (Ws.frame(1, b'{"type":"dance"}'), 1008), (b"\xff\xff", 1002)):
            with Ws(server) as w:
                w.send_bytes(data)
                same(w.close_code(), wanted)
        for request in ({"type": "execute", "stream_id": 9, "stmt": {"sql": "SELECT 1"}},
                        {"type": "fetch_cursor", "cursor_id": 9, "max_count": 1}, {"type": "close_stream", "stream_id": 9},
                        {"type": "close"}, {"type": "x" * 1000}):
            with Ws(server) as w:
                w.request(1, **{"kind": request.pop("type"), **request})
                same(w.close_code(), 1008)
        with Ws(server) as w:
            w.ask(1, "open_stream", stream_id=1)
            w.request(2, "open_stream", stream_id=1)
            same(w.close_code(), 1008)
        with Ws(server, "hrana1") as w:
            w.request(1, "store_sql", sql_id=1, sql="x")
            same(w.close_code(), 1008)


def test_hello_needs_the_token(t):
    with Server(t.weftd, t.path(), env={"WEFT_TOKEN": "secret"}) as server:
        for jwt in (None, "wrong"):
            with Ws(server, hello=False) as w:
                w.send({"type": "hello", "jwt": jwt})
                answer = w.receive()
                same((answer["type"], answer["error"]["code"][:5]), ("hello_error", "AUTH_"))
                same(w.close_code(), 1008)
        with Ws(server, hello=False) as w:
            w.send({"type": "hello", "jwt": "secret"})
            same(w.receive(), {"type": "hello_ok"})
            w.send({"type": "hello", "jwt": "secret"})
            same(w.receive(), {"type": "hello_ok"})
        with Http(server) as h:
            status, _, body = h.ask("POST", "/v2/pipeline", {"requests": []})
            same((status, json.loads(body)["code"]), (401, "AUTH_HTTP_HEADER_MISSING"))
            same(h.ask("POST", "/v2/pipeline", {"requests": []}, ["Authorization: Bearer secret"])[0], 200)
            same(h.ask("GET", "/metrics")[0], 401)
            same(h.ask("GET", "/health")[0], 200)


def test_many_streams_on_one_socket(t):
    """Answers belong to their requests, though streams run side by side."""
    count = 10 if t.slow else 50
    with Server(t.weftd, t.path()) as server, Ws(server) as w:
        for i in range(count):
            w.request(i, "open_stream", stream_id=i)
        for i in range(count):
            w.receive()
        for turn in range(10):
            for i in range(count):
                w.request(turn * 1000 + i, "execute", stream_id=i, stmt={"sql": "SELECT ?", "args": [value(turn * 1000 + i)]})
        left = count * 10
        while left > 0:
            answer = w.receive()
            same(answer["response"]["result"]["rows"][0][0]["value"], str(answer["request_id"]))
            left -= 1


def test_socket_lost_while_a_statement_runs(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        with Ws(server) as w:
            w.ask(1, "open_stream", stream_id=1)
            w.request(2, "execute", stream_id=1, stmt={"sql": endless})
            with server.connect() as c:
                wait_running(c)
        for _ in range(100):
            if rows(h.pipeline(execute("SELECT count(*) FROM weft_sessions"), CLOSE)[0]) == [["1"]]:
                return
            time.sleep(0.1)
        raise AssertionError("it still runs")


# ---- the server ----

def test_sessions_are_listed_and_ended(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c, Http(server) as h:
        c.run("BEGIN")
        c.query("SELECT 'look at me'")
        listed = c.query("SELECT protocol, state, transaction_seconds >= 0, sql FROM weft_sessions")
        same(listed, [["quack", "running", 1, "SELECT protocol, state, transaction_seconds >= 0, sql FROM weft_sessions"]])
        with server.connect() as victim:
            number = victim.query("SELECT id FROM weft_sessions ORDER BY id DESC LIMIT 1")[0][0]
            same(c.query("SELECT weft_end_session(?)", [number]), [[1]])
            try:
                victim.query("SELECT 1")
                raise AssertionError("it still lives")
            except (Closed, OSError):
                pass
        same(c.query("SELECT weft_end_session(123456)"), [[0]])
        for _ in range(100):
            if rows(h.pipeline(execute("SELECT count(*) FROM weft_sessions"), CLOSE)[0]) == [["2"]]:
                return
            time.sleep(0.05)
        raise AssertionError("the ended session is still there")


def test_many_databases(t):
    folder = t.path("many")
    with Server(t.weftd, folder, "--dir") as server, Http(server) as h, server.connect() as c:
        for name, host in (("one", "one.localhost"), ("two", "two.localhost:99"), ("default", "localhost")):
            body = {"requests": [execute("CREATE TABLE t(a)"), execute("INSERT INTO t VALUES(?)", name), CLOSE]}
            same([r["type"] for r in json.loads(h.ask("POST", "/v2/pipeline", body, host=host)[2])["results"]], ["ok"] * 3)
        query = {"requests": [execute("SELECT a FROM t"), CLOSE]}
        same(rows(json.loads(h.ask("POST", "/dev/one/v2/pipeline", query)[2])["results"][0]), [["one"]])
        same(rows(json.loads(h.ask("POST", "/v2/pipeline", query, ["x-namespace: two"])[2])["results"][0]), [["two"]])
        same(c.query("SELECT a FROM t"), [["default"]])
        same(c.run("SELECT 1") and c.call(use="two")[2]["done"], 0)
        same(c.query("SELECT a FROM t"), [["two"]])
        c.run("ATTACH 'one' AS other")
        same(c.query("SELECT a FROM other.t"), [["one"]])
        for name in ("../x", "/etc/passwd", "x/y", "", "file:one"):
            try:
                c.run(f"ATTACH '{name}' AS bad")
                raise AssertionError(name)
            except QuackError as error:
                same(error.name, "SQLITE_AUTH")
        c.run("DETACH other")
        c.run("VACUUM INTO 'copy'")
        c.call(use="copy")
        same(c.query("SELECT a FROM t"), [["two"]])
        for name in ("../x", "A b", ""):
            try:
                c.call(use=name)
                raise AssertionError(name)
            except QuackError:
                pass
        same(sorted(n for n in os.listdir(folder) if n.endswith(".weft")),
             ["copy.weft", "default.weft", "one.weft", "two.weft"])
    with Server(t.weftd, folder, "--dir", create=False) as server, Http(server) as h:
        status, _, _ = h.ask("POST", "/dev/three/v2/pipeline", {"requests": []})
        same(status, 404)
        same(rows(json.loads(h.ask("POST", "/dev/copy/v2/pipeline", query)[2])["results"][0]), [["two"]])


def test_idle_databases_are_closed(t):
    folder = t.path("many")
    with Server(t.weftd, folder, "--database-timeout", "0.5", "--dir") as server, Http(server) as h:
        def open_ones():
            text = h.ask("GET", "/metrics")[2].decode()
            return [name for name in ("one", "two") if f'commits_total{{database="{name}"}}' in text]
        for name in ("one", "two"):
            body = {"requests": [execute("CREATE TABLE t(a)"), execute("INSERT INTO t VALUES(1)"), CLOSE]}
            same(h.ask("POST", f"/dev/{name}/v2/pipeline", body)[0], 200)
        with server.connect() as c:
            c.call(use="two")
            c.run("BEGIN")
            c.run("INSERT INTO t VALUES(2)")
            for _ in range(100):
                if open_ones() == ["two"]:
                    break
                time.sleep(0.1)
            same(open_ones(), ["two"])
            c.run("COMMIT")
        for name, wanted in (("one", "1"), ("two", "2")):
            body = {"requests": [execute("SELECT count(*) FROM t"), CLOSE]}
            answer = h.ask("POST", f"/dev/{name}/v2/pipeline", body)
            same(rows(json.loads(answer[2])["results"][0]), [[wanted]])


def test_streams_on_threads(t):
    """Without fibers the streams of a socket run side by side all the same."""
    with Server(t.weftd, t.path(), "--threads") as server, Ws(server) as w:
        for i in (1, 2):
            w.ask(i, "open_stream", stream_id=i)
        w.ask(3, "execute", stream_id=1, stmt={"sql": "CREATE TABLE t(a INTEGER PRIMARY KEY, v)"})
        w.ask(4, "execute", stream_id=1, stmt={"sql": "INSERT INTO t VALUES(1, 0)"})
        w.ask(5, "execute", stream_id=1, stmt={"sql": "BEGIN IMMEDIATE"})
        w.ask(6, "execute", stream_id=1, stmt={"sql": "UPDATE t SET v = 1"})
        w.request(7, "execute", stream_id=2, stmt={"sql": "UPDATE t SET v = v + 10"})
        w.request(8, "execute", stream_id=1, stmt={"sql": "COMMIT"})
        same({w.receive()["request_id"], w.receive()["request_id"]}, {7, 8})
        answer = w.ask(9, "execute", stream_id=1, stmt={"sql": "SELECT v FROM t"})
        same(answer["response"]["result"]["rows"], [[{"type": "integer", "value": "11"}]])
        for i in (1, 2):
            w.ask(i, "close_stream", stream_id=i)
        w.ask(3, "open_stream", stream_id=1)
        w.request(4, "execute", stream_id=1, stmt={"sql": "SELECT 1"})


def test_files_are_out_of_reach(t):
    with Server(t.weftd, t.path()) as server, server.connect() as c:
        for sql in ("ATTACH 'x' AS y", "ATTACH '/tmp/x' AS y", "VACUUM INTO '/tmp/weft-never'", "/**/ ATTACH 'a'||'b' AS y"):
            try:
                c.run(sql)
                raise AssertionError(sql)
            except QuackError as error:
                same(error.name, "SQLITE_AUTH")
            try:
                c.call(script=sql)
                raise AssertionError(sql)
            except QuackError as error:
                same(error.name, "SQLITE_AUTH")
        c.run("VACUUM")


def test_no_spelling_leads_out(t):
    """More than a hundred ways to write a file elsewhere, by every door that takes a name: refused, and nothing is made."""
    root = t.path("root")
    folder = os.path.join(root, "d")
    os.makedirs(folder)
    heads = ["../", "..\\", "/", "./", "../../", "..%2f", "%2e%2e/", "d/../../", "file:", "file://", "file:///", "~/", "\u2025/", "..;/",
             os.path.join(root, "")]
    tails = ["x", "x.weft", "X", "x ", " x", "x/", "x?mode=rwc", "x#y", ".x", "x\u00e9"]
    names = [head + tail for head in heads for tail in tails] + ["", ".", "..", "-x", "\0x", "x\ny", "a" * 64, ":memory:x", "A"]
    same(len(names) > 150, True)
    with Server(t.weftd, folder, "--dir") as server, Http(server) as h, server.connect() as c:
        c.call(use="home")
        c.run("CREATE TABLE t(a)")
        for name in names:
            for sql in ("ATTACH ? AS x", "VACUUM INTO ?"):
                result = h.pipeline(execute("SELECT 1"), execute(sql, name), CLOSE)[1]
                same((name, result["type"]), (name, "error"))
            try:
                c.call(use=name)
                raise AssertionError(name)
            except QuackError as error:
                same((name, error.name in ("QUACK_REQUEST", "SQLITE_CANTOPEN")), (name, True))
            if name.isascii() and name.isprintable() and name.strip() == name != "":
                status = h.ask("POST", "/v2/pipeline", {"requests": [CLOSE]}, ["x-namespace: " + name])[0]
                same((name, status), (name, 404))
        same(c.query("SELECT count(*) FROM t"), [[0]])      # Still at home.
    same(os.listdir(root), ["d"])
    same({name.split(".")[0] for name in os.listdir(folder)}, {"home", "default"})


def test_links_out_of_the_directory_are_refused(t):
    """A database, or a part of its log, that is a link to a file elsewhere: refused, and that file is let alone."""
    folder, outside = t.path("d"), t.path("outside")
    os.mkdir(folder)
    os.mkdir(outside)
    with Server(t.weftd, os.path.join(outside, "secret.weft")) as server, server.connect() as c:
        c.run("CREATE TABLE secret(x)")
    with open(os.path.join(outside, "precious"), "wb") as f:
        f.write(b"precious")
    links = {"out": os.path.join(outside, "secret.weft"), "up": "../" + os.path.basename(outside) + "/secret.weft",
             "fresh": os.path.join(outside, "fresh.weft"), "down": "sub/x.weft"}
    os.mkdir(os.path.join(folder, "sub"))
    for name, target in links.items():
        os.symlink(target, os.path.join(folder, name + ".weft"))
    os.symlink("real.weft", os.path.join(folder, "alias.weft"))

    def ask(h, name, *requests):
        status, _, body = h.ask("POST", "/v2/pipeline", {"requests": [*requests, CLOSE]}, ["x-namespace: " + name])
        return status, json.loads(body)
    with Server(t.weftd, folder, "--dir") as server, Http(server) as h, server.connect() as c:
        same(ask(h, "real", execute("CREATE TABLE t(a)"))[0], 200)
        same(rows(ask(h, "alias", execute("SELECT name FROM sqlite_schema"))[1]["results"][0]), [["t"]])
        for name in links:
            status, answer = ask(h, name, execute("SELECT * FROM secret"))
            same((name, status, "link" in answer["message"]), (name, 404, True))
            why = code(ask(h, "real", execute(f"ATTACH '{name}' AS x"))[1]["results"][0])
            same((name, why in ("SQLITE_CANTOPEN", "SQLITE_PERM")), (name, True))
            same((name, ask(h, "real", execute(f"VACUUM INTO '{name}'"))[1]["results"][0]["type"]), (name, "error"))
        logs = [name for name in os.listdir(folder) if name.startswith("real.weft-")]
        same(len(logs) > 0, True)
        for log in logs:        # The same of another database, waiting for it to be made.
            os.symlink(os.path.join(outside, "precious"), os.path.join(folder, log.replace("real", "trap", 1)))
        same(ask(h, "trap", execute("CREATE TABLE t(a)"))[0] == 200, False)
    same(sorted(os.listdir(outside)), ["precious", "secret.weft"])
    with open(os.path.join(outside, "precious"), "rb") as f:
        same(f.read(), b"precious")


def certificate(folder, name):
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}", "-addext",
                    "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    return cert, key


def test_tls(t):
    """All protocols inside, in pieces too; a new certificate on SIGHUP."""
    cert, key = certificate(t.folder, "first")

    def context():
        made = ssl.create_default_context(cafile=cert)
        made.check_hostname = True
        return made

    def subject(h):
        return dict(part[0] for part in h.socket.getpeercert()["subject"])["commonName"]
    with Server(t.weftd, t.path(), "--tls-cert", cert, "--tls-key", key) as server:
        with Http(server, context=context()) as h:
            same(subject(h), "first")
            gauges = dict(re.findall(r"^(weft_[a-z_]+_bytes) (\d+)$", h.ask("GET", "/metrics")[2].decode(), re.M))
            parts = [int(gauges[f"weft_{part}_bytes"]) for part in ("stack", "socket", "openssl")]
            least = (8192, 2 * 4096, 100000)
            same([max(part, low) for part, low in zip(parts, least)], parts)
            same(sum(parts) < int(gauges["weft_memory_bytes"]), True)
            same(rows(h.pipeline(execute("SELECT length(?)", "x" * 300000), CLOSE)[0]), [["300000"]])
            body = json.dumps({"requests": [execute("SELECT 1"), CLOSE]})
            for byte in f"POST /v2/pipeline HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}":
                h.socket.sendall(byte.encode())
            same(h.receive()[0], 200)
            with Http(server, context=context()) as q:                  # Quack inside.
                q.socket.sendall(b'\n{"q": "SELECT 6 * 7"}\n')
                lines = [json.loads(q.file.readline()) for _ in range(4)]
                same((lines[0]["hello"], lines[2]["row"]), ("weft", [42]))
            certificate(t.folder, "second")
            server.process.send_signal(signal.SIGHUP)
            for _ in range(100):
                try:
                    with Http(server, context=context()) as again:
                        if subject(again) == "second":
                            break
                except ssl.SSLError:
                    pass
                time.sleep(0.05)
            else:
                raise AssertionError("the old certificate")
            same(rows(h.pipeline(execute("SELECT 1"), CLOSE)[0]), [["1"]])    # The old connection lives.
            with open(cert, "w", encoding="ascii") as file:
                file.write("nonsense")
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.2)
            same(rows(h.pipeline(execute("SELECT 1"), CLOSE)[0]), [["1"]])
            with Http(server) as plain:                                   # This machine may do without.
                same(plain.ask("GET", "/health")[0], 200)
        with socket.create_connection(server.address.rsplit(":", 1)) as bad:
            bad.sendall(b"\x16\x03\x01\x00\x05hello")
            bad.settimeout(10)
            while bad.recv(1000):
                pass
        same(server.terminate(), 0)


def test_plain_text_is_refused_to_other_machines(t):
    """With a certificate; an address of this machine that is not loopback stands for another machine's."""
    cert, key = certificate(t.folder, "only")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))     # Sends nothing: which address would it come from?
            own = probe.getsockname()[0]
        except OSError:
            own = "127.0.0.1"
    if own.startswith("127."):
        print("# no address but loopback: not tested here")
        return
    token = os.path.join(t.folder, "token")
    with open(token, "w", encoding="ascii") as file:
        file.write("secret")
    with Server(t.weftd, t.path(), "--listen", f"{own}:0", "--token-file", token, "--tls-cert", cert, "--tls-key", key) as server:
        for start in (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b'{"ping": 1}\n'):
            with socket.create_connection(server.addresses[1].rsplit(":", 1), timeout=30) as s:
                s.sendall(start)
                same(s.recv(1000), b"")
        context = ssl.create_default_context(cafile=cert)
        with Http(server, 1, context) as h:
            same(h.ask("GET", "/health")[0], 200)


def test_streams_are_counted(t):
    with Server(t.weftd, t.path(), "--max-streams", "2") as server, Http(server) as first, Http(server) as second:
        for h in (first, second):
            h.pipeline(execute("BEGIN"))
        with Http(server) as third:
            status, _, body = third.ask("POST", "/v2/pipeline", {"requests": [execute("SELECT 1")]})
            same((status, b"streams" in body), (429, True))
        first.pipeline(CLOSE, baton=first.baton)
        with Http(server) as third:
            same(rows(third.pipeline(execute("SELECT 1"), CLOSE)[0]), [["1"]])


def test_unix_socket_speaks_all(t):
    path = os.path.join(t.folder, "s")
    with Server(t.weftd, t.path(), "--unix", path) as server, server.connect(1) as c:
        same(c.query("SELECT 1"), [[1]])
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            same(s.makefile("rb").read().startswith(b"HTTP/1.1 200"), True)


def test_silence_gets_the_banner_where_it_is_wanted(t):
    path = os.path.join(t.folder, "silent")
    with Server(t.weftd, t.path(), "--unix", path) as server:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(server.addresses[1][5:])
            same(b'"quack":1' in s.recv(1000), True)
    with Server(t.weftd, t.path()) as server:
        with socket.create_connection(server.address.rsplit(":", 1), timeout=30) as s:
            same(b'"quack":1' in s.recv(1000), True)


def test_http_client_that_connects_ahead(t):
    """Silent for longer than the pause after which others are greeted, then a request: nothing but its answer comes."""
    path = os.path.join(t.folder, "ahead")
    with Server(t.weftd, t.path(), "--no-greet", "--unix", path) as server, socket.socket(socket.AF_UNIX) as clock:
        with socket.create_connection(server.address.rsplit(":", 1), timeout=30) as s:
            clock.settimeout(30)
            clock.connect(path)
            same(b'"quack":1' in clock.recv(1000), True)    # Greeted, though it came later: the pause is over for s too.
            s.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            same(s.makefile("rb").read().startswith(b"HTTP/1.1 200"), True)
        with socket.create_connection(server.address.rsplit(":", 1), timeout=30) as s:
            s.sendall(b"\n")
            same(b'"quack":1' in s.recv(1000), True)


def test_who_never_speaks_is_sent_away(t):
    with Server(t.weftd, t.path(), "--no-greet", "--keep-alive", "0.2") as server:
        with socket.create_connection(server.address.rsplit(":", 1), timeout=30) as s:
            same(s.recv(1000), b"")


def test_configuration_file(t):
    folder = t.path("configured")
    os.mkdir(folder)
    config = os.path.join(folder, "weftd.conf")
    with open(config, "w", encoding="ascii") as file:
        file.write("# a comment\n\nmax-line = 1K\nlog-format=json\nslow-statement = 0.001\nmax-response=1M\n")
    with Server(t.weftd, os.path.join(folder, "a.weft"), "--config", config, "--max-response=100K") as server:
        with server.connect() as c:
            c.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT max(i) FROM n")
            c.send_bytes(b'{"q": "' + b"x" * 2000 + b'"}\n')
            same(c.receive()["err"]["name"], "QUACK_LIMIT")
        with Http(server) as h:
            same(code(h.pipeline(execute("SELECT zeroblob(200000)"), CLOSE)[0]), "RESPONSE_TOO_LARGE")
        same(server.terminate(), 0)
        lines = [json.loads(line) for line in server.log.decode().splitlines()]
        same(any("slow statement" in line["text"] and "RECURSIVE" in line["text"] for line in lines), True)
    for text in ("nope = 1", "max-line = x", "just words"):
        with open(config, "w", encoding="ascii") as file:
            file.write(text)
        done = subprocess.run([t.weftd, "--config", config, "x"], capture_output=True, timeout=60, check=False)
        same(done.returncode, 2)


def test_metrics(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        h.pipeline(execute("CREATE TABLE t(a)"), execute("INSERT INTO t VALUES(1)"), execute("SELECT * FROM t"),
                   execute("SELECT * FROM nope"), CLOSE)
        _, headers, body = h.ask("GET", "/metrics")
        same(headers["content-type"].startswith("text/plain"), True)
        found = dict(line.rsplit(" ", 1) for line in body.decode().splitlines() if not line.startswith("#"))
        same((found['weft_statement_seconds_count{kind="insert"}'], found['weft_statement_seconds_count{kind="schema"}'],
              found["weft_rows_total"]), ("1", "1", "1"))
        same(int(found['weft_store_commits_total{database=""}']) >= 2, True)
        buckets = [int(v) for k, v in found.items() if k.startswith('weft_statement_seconds_bucket{kind="insert"')]
        same(buckets == sorted(buckets) and buckets[-1] == 1, True)


def test_dump(t):
    with Server(t.weftd, t.path()) as server, Http(server) as h, server.connect() as c:
        c.call(script="""CREATE TABLE "a b"(i INTEGER PRIMARY KEY, "q""x" TEXT, b BLOB, g AS (i + 1));
            CREATE INDEX ix ON "a b"("q""x"); CREATE VIEW v AS SELECT i FROM "a b";
            CREATE TRIGGER tr AFTER INSERT ON "a b" BEGIN SELECT 1; END""")
        c.run('INSERT INTO "a b" VALUES(1, ?, ?)', ["it's;\n", {"base64": "AP8="}])
        c.run('INSERT INTO "a b" VALUES(2, NULL, 1.5)')
        status, _, body = h.ask("GET", "/dump")
        same(status, 200)
        done = subprocess.run(["sqlite3", ":memory:"], input=body + b'SELECT quote(i), quote("q""x"), quote(b), g FROM "a b";'
                              b"SELECT count(*) FROM sqlite_schema; SELECT * FROM v ORDER BY 1;", capture_output=True, check=False)
        same((done.stdout, done.stderr), (b"1|'it''s;\n'|X'00FF'|2\n2|NULL|1.5|3\n4\n1\n2\n", b""))


def test_drain_over_http(t):
    with Server(t.weftd, t.path(), "--drain-timeout", "60") as server, Http(server) as h, Http(server) as idle, Ws(server) as w:
        same(idle.ask("GET", "/health")[0], 200)
        w.ask(1, "open_stream", stream_id=1)
        h.send("POST", "/v2/pipeline", {"requests": [execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT count(*) FROM n",
            200000 if t.slow else 1000000), CLOSE]})
        with server.connect() as c:
            wait_running(c)
        server.process.send_signal(signal.SIGTERM)
        status, headers, _ = h.receive()
        same((status, headers["connection"]), (200, "close"))
        try:
            w.close_code()
        except Closed:
            pass
        same(server.wait(), 0)


def test_concurrent_writers(t):
    """Fifty HTTP connections insert at once: all come through, none stalls."""
    count, each = (10, 5) if t.slow else (50, 10)
    with Server(t.weftd, t.path()) as server, Http(server) as h:
        h.pipeline(execute("CREATE TABLE t(a INTEGER PRIMARY KEY, who)"), CLOSE)
        failures = []

        def work(who):
            try:
                with Http(server) as mine:
                    for _ in range(each):
                        same(mine.pipeline(execute("INSERT INTO t(who) VALUES(?)", who), CLOSE)[0]["type"], "ok")
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)
        threads = [threading.Thread(target=work, args=(who,)) for who in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        same(failures, [])
        same(rows(h.pipeline(execute("SELECT count(*), count(DISTINCT who) FROM t"), CLOSE)[0]), [[str(count * each), str(count)]])


def test_idle_memory(t):
    """Connections that have worked and rest own neither stack nor session."""
    def resident(server):
        with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def quack(server):
        c = server.connect()
        c.query("SELECT 1")
        return c

    def http(server):
        h = Http(server)
        h.pipeline(execute("SELECT 1"), CLOSE)
        return h

    def websocket(server):
        w = Ws(server)
        w.ask(1, "open_stream", stream_id=1)
        w.ask(2, "execute", stream_id=1, stmt={"sql": "SELECT 1"})
        w.ask(3, "close_stream", stream_id=1)
        return w

    def tls(server):
        h = Http(server, context=context)
        h.pipeline(execute("SELECT 1"), CLOSE)
        return h
    cert, key = certificate(t.folder, "idle")
    context = ssl.create_default_context(cafile=cert)
    with Server(t.weftd, t.path(), "--tls-cert", cert, "--tls-key", key) as server:
        kept = []
        for make, most in ((quack, 4096), (http, 4096), (websocket, 4096), (tls, 40960)):
            kept += [make(server) for _ in range(100)]
            before = resident(server)
            kept += [make(server) for _ in range(100 if t.slow else 500)]
            each = (resident(server) - before) / (100 if t.slow else 500)
            print(f"# {make.__name__}: {each:.0f} bytes for each idle connection")
            if not t.slow and each > most:
                raise AssertionError(f"{make.__name__}: {each:.0f} bytes for each idle connection")


if __name__ == "__main__":
    harness.main(globals())
