#!/usr/bin/env python3
"""token_test.py -- signed tokens: which are taken, and how far each reaches.

Method: the real weftd with an Ed25519 key; tokens are signed by the openssl program.  A list of forgeries is shown
in every protocol; tokens that are good try to get beyond what they allow.
"""
import base64
import hashlib
import hmac
import json
import os
import subprocess
import time

import harness
from harness import same
from http_test import CLOSE, Http, Ws, code, execute, rows
from quack import Closed, QuackError, Server

HEAD = {"alg": "EdDSA", "typ": "JWT"}


def part(value):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Keys:
    def __init__(self, t, name):
        self.private, self.public = t.path(name + ".pem"), t.path(name + ".pub")
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.private], check=True, capture_output=True)
        subprocess.run(["openssl", "pkey", "-in", self.private, "-pubout", "-out", self.public], check=True)

    def sign(self, text):
        path = self.private + ".text"
        with open(path, "wb") as f:
            f.write(text.encode())
        return subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", self.private, "-in", path],
                              check=True, capture_output=True).stdout

    def token(self, claims, head=None):
        text = part(head or HEAD) + "." + part(claims)
        return text + "." + part(self.sign(text))


def served(t, keys, *options):
    return Server(t.weftd, os.path.join(t.folder, "d"), *options, "--jwt-key-file", keys.public, "--dir")


def bearer(token):
    return ["Authorization: Bearer " + token]


def ask_http(server, token, database, *requests):
    """Status and the answer, or its code."""
    with Http(server) as h:
        status, _, body = h.ask("POST", "/v2/pipeline", {"requests": [*requests, CLOSE]}, bearer(token) + ["x-namespace: " + database])
    answer = json.loads(body)
    return status, answer["results"] if status == 200 else answer["code"]


def fails(run, *names):
    try:
        run()
    except QuackError as error:
        same(error.name in names, True)
        return
    raise AssertionError("no error")


def test_forged_tokens_are_refused(t):
    keys, others, now = Keys(t, "ours"), Keys(t, "others"), int(time.time())
    good = keys.token({"exp": now + 1000})
    head, body, signature = good.split(".")
    with open(keys.public, "rb") as f:
        public = f.read()
    hs256 = part({"alg": "HS256"}) + "." + body
    forged = {
        "other key": others.token({"exp": now + 1000}),
        "expired": keys.token({"exp": now - 1}),
        "not yet": keys.token({"nbf": now + 1000}),
        "alg none": part({"alg": "none"}) + "." + body + ".",
        "alg none, signed": keys.token({}, {"alg": "none"}),
        "alg missing": keys.token({}, {"typ": "JWT"}),
        "hmac with the public key": hs256 + "." + part(hmac.new(public, hs256.encode(), hashlib.sha256).digest()),
        "claims changed": head + "." + part({"exp": now + 9000}) + "." + signature,
        "head changed": part({"alg": "EdDSA", "kid": "1"}) + "." + body + "." + signature,
        "signature cut": good[:-4],
        "signature empty": head + "." + body + ".",
        "no signature": head + "." + body,
        "a part more": good + ".x",
        "claims are no object": keys.token([1]),
        "claims are no JSON": head + "." + part(b"{") + "." + part(keys.sign(head + "." + part(b"{"))),
        "no database": keys.token({"id": "../up"}),
        "nothing": "", "dots": "..", "words": "Bearer x",
    }
    with served(t, keys) as server:
        same(ask_http(server, good, "a", execute("SELECT 1"))[0], 200)
        for what, token in forged.items():
            status, answer = ask_http(server, token, "a", execute("CREATE TABLE never(x)"))
            same((what, status, answer[:5]), (what, 401, "AUTH_"))
            same((what, answer == "AUTH_JWT_EXPIRED"), (what, what == "expired"))
            with Ws(server, hello=False) as w:
                w.send({"type": "hello", "jwt": token})
                same((what, w.receive()["type"], w.close_code()), (what, "hello_error", 1008))
            with server.connect() as c:
                fails(lambda token=token, c=c: c.call(token=token), "QUACK_AUTH")
                try:
                    c.query("SELECT 1")
                    raise AssertionError("served")
                except (Closed, ConnectionError):
                    pass
        same(rows(ask_http(server, good, "a", execute("SELECT count(*) FROM sqlite_schema"))[1][0]), [["0"]])


def test_secrets_are_not_logged(t):
    """Neither tokens nor keys stand in logs or answers, however they are shown."""
    keys = Keys(t, "ours")
    token = keys.token({})
    with served(t, keys, "--verbose") as server:
        wrong = token[:-8] + "AAAAAAAA"
        for shown in (token, wrong):
            _, answer = ask_http(server, shown, "a", execute("nonsense"))
            same(shown[-20:] in json.dumps(answer), False)
        with server.connect() as c:
            fails(lambda: c.call(token=wrong), "QUACK_AUTH")
        server.terminate()
        log = server.log.decode()
        same((token[-20:] in log, wrong[-20:] in log), (False, False))


def test_read_only_tokens_write_nothing(t):
    keys = Keys(t, "ours")
    full, reads = keys.token({}), keys.token({"a": "ro"})
    with served(t, keys) as server:
        same(ask_http(server, full, "a", execute("CREATE TABLE t(a)"), execute("INSERT INTO t VALUES(1)"))[0], 200)
        same(ask_http(server, full, "b", execute("CREATE TABLE t(a)"))[0], 200)
        for sql, wanted in (("INSERT INTO t VALUES(2)", "SQLITE_READONLY"), ("CREATE TABLE u(a)", "SQLITE_READONLY"),
                            ("DROP TABLE t", "SQLITE_READONLY"), ("VACUUM", "SQLITE_READONLY"), ("VACUUM INTO 'c'", "SQLITE_AUTH"),
                            ("PRAGMA user_version = 5", "SQLITE_READONLY")):
            same((sql, code(ask_http(server, reads, "a", execute(sql))[1][0])), (sql, wanted))
            with server.connect() as c:
                c.call(token=reads)
                c.call(use="a")
                fails(lambda sql=sql, c=c: c.run(sql), wanted)
        results = ask_http(server, reads, "a", execute("ATTACH 'b' AS b"), execute("INSERT INTO b.t VALUES(1)"))[1]
        same((results[0]["type"], code(results[1])), ("ok", "SQLITE_READONLY"))
        # Nothing came of it, and no file either.
        same(rows(ask_http(server, full, "a", execute("SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM sqlite_schema), user_version "
                                                      "FROM pragma_user_version"))[1][0]), [["1", "1", "0"]])
        same(ask_http(server, full, "b", execute("ATTACH 'a' AS c"), execute("VACUUM INTO 'fresh'"))[1][1]["type"], "ok")
        names = os.listdir(os.path.join(t.folder, "d"))
        same(sorted(name for name in names if name.endswith(".weft")), ["a.weft", "b.weft", "fresh.weft"])


def test_tokens_of_one_database_stay_there(t):
    keys = Keys(t, "ours")
    full, one = keys.token({}), keys.token({"id": "a"})
    with served(t, keys) as server:
        for name in "ab":
            same(ask_http(server, full, name, execute("CREATE TABLE t(a)"))[0], 200)
        same(ask_http(server, one, "a", execute("INSERT INTO t VALUES(1)"))[0], 200)
        same(ask_http(server, one, "b", execute("SELECT 1")), (403, "AUTH_JWT_NOT_ALLOWED"))
        for sql in ("ATTACH 'b' AS b", "VACUUM INTO 'c'", "VACUUM INTO 'b'"):
            same((sql, code(ask_http(server, one, "a", execute(sql))[1][0])), (sql, "SQLITE_AUTH"))
        with server.connect() as c:
            c.call(token=one)
            same(c.query("SELECT a FROM t"), [[1]])     # There without saying so.
            fails(lambda: c.call(use="b"), "QUACK_AUTH")
            fails(lambda: c.run("ATTACH 'b' AS b"), "SQLITE_AUTH")
        with Http(server) as h:
            baton = json.loads(h.ask("POST", "/v2/pipeline", {"requests": [execute("BEGIN")]}, bearer(full) + ["x-namespace: a"])[2])["baton"]
            go_on = {"baton": baton, "requests": [execute("SELECT 1")]}
            same(h.ask("POST", "/v2/pipeline", go_on, bearer(one) + ["x-namespace: a"])[0], 400)
            same(h.ask("POST", "/v2/pipeline", go_on, bearer(full) + ["x-namespace: b"])[0], 400)
            same(h.ask("POST", "/v2/pipeline", go_on, bearer(full) + ["x-namespace: a"])[0], 200)


def test_a_new_token_changes_what_is_allowed(t):
    """Quack: what comes after it has its rights and its database, not those of the one before."""
    keys = Keys(t, "ours")
    full, reads, of_b = keys.token({}), keys.token({"a": "ro"}), keys.token({"id": "b"})
    with served(t, keys) as server, server.connect() as c:
        c.call(token=full)
        c.call(use="a")
        c.run("CREATE TABLE t AS SELECT 'a' AS name")
        c.call(token=reads)
        fails(lambda: c.run("DELETE FROM t"), "SQLITE_READONLY")
        c.run("BEGIN")
        fails(lambda: c.call(token=full), "QUACK_REQUEST")      # Not in the middle.
        c.run("COMMIT")
        c.call(token=full)
        c.run("UPDATE t SET name = name")
        handle = c.call(prepare="SELECT name FROM t")[2]["handle"]
        fails(lambda: c.call(token=of_b), "QUACK_REQUEST")
        c.call(close=handle)
        c.call(token=of_b)
        fails(lambda: c.query("SELECT name FROM t"), "SQLITE_ERROR")
        fails(lambda: c.call(use="a"), "QUACK_AUTH")


if __name__ == "__main__":
    harness.main(globals())
