#!/usr/bin/env python3
"""run.py -- libSQL's and Turso's npm clients, and curl, against a weftd of this build.

    tests/clients/libsql/run.py --build build/release [ARGUMENT OF THE SCRIPTS...]

Installs the clients of package.json into build/clients/libsql (npm, once), starts the real weftd on
a free port in several ways -- plain, with a token, with a signed token, with TLS -- and runs the
scripts over http, ws, https and wss.  Prints TAP lines and, alone at the end,
"N passed, N failed".  Without node it says so and ends with status 77.
"""
import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/server"))
from quack import Server  # noqa: E402  pylint: disable=wrong-import-position


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def lines(self, title, text, status):
        good = len(re.findall(r"^ok ", text, re.M))
        bad = len(re.findall(r"^not ok ", text, re.M))
        if status != 0 and bad == 0:
            bad = 1
        self.passed += good
        self.failed += bad
        print(f"== {title}: {good} passed, {bad} failed", flush=True)
        if bad:
            print("\n".join(line for line in text.splitlines() if not line.startswith("ok ")), flush=True)

    def check(self, title, good, detail=""):
        self.passed += bool(good)
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} - {title}{'' if good else ': ' + str(detail)[:400]}", flush=True)


def install(folder):
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (HERE / "package.json").read_text()
    mark = folder / "package.json"
    if not mark.exists() or mark.read_text() != wanted or not (folder / "node_modules").exists():
        mark.write_text(wanted)
        subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"],
                       cwd=folder, check=True)
    for script in HERE.glob("*.mjs"):
        shutil.copy(script, folder)
    for name in ("@libsql/client", "@libsql/hrana-client", "@tursodatabase/serverless"):
        about = json.loads((folder / "node_modules" / name / "package.json").read_text())
        print(f"== {name} {about['version']}", flush=True)


def node(folder, tally, title, script, url, token=None, ca=None):
    env = dict(os.environ)
    if ca:
        env["NODE_EXTRA_CA_CERTS"] = ca
    done = subprocess.run(["node", script, url, *([token] if token else [])], cwd=folder, env=env,
                          capture_output=True, text=True, timeout=600, check=False)
    tally.lines(title, done.stdout + done.stderr, done.returncode)


def both(folder, tally, title, server, scheme, token=None, ca=None):
    for secure in scheme:
        url = f"{secure}://{server.address.replace('127.0.0.1', 'localhost') if ca else server.address}"
        for script in ("conform.mjs", "protocol3.mjs"):
            node(folder, tally, f"{title} {script} {secure}", script, url, token, ca)


def curl(*arguments):
    done = subprocess.run(["curl", "-s", "-i", "--max-time", "30", *arguments], capture_output=True, text=True,
                          check=False)
    head, _, body = done.stdout.partition("\n\n")
    if head.startswith("HTTP/1.1 100"):
        head, _, body = body.partition("\n\n")
    return int(head.split()[1]) if head else 0, head, body


def curl_tests(tally, server):
    """What people do by hand."""
    base = f"http://{server.address}"
    query = json.dumps({"requests": [{"type": "execute", "stmt": {"sql": "SELECT 1 + 1"}}, {"type": "close"}]})
    status, _, body = curl(f"{base}/v2/pipeline", "-d", query)
    tally.check("curl: pipeline", status == 200 and '"value":"2"' in body, body)
    status, _, body = curl(f"{base}/v3/cursor", "-d", '{"batch": {"steps": [{"stmt": {"sql": "SELECT 7"}}]}}')
    tally.check("curl: cursor", status == 200 and len(body.splitlines()) == 4, body)
    status, _, body = curl(f"{base}/health")
    tally.check("curl: health", status == 200 and body == "", body)
    status, _, body = curl(f"{base}/metrics")
    tally.check("curl: metrics", status == 200 and "weft_statement_seconds_count" in body, body)
    status, _, body = curl(f"{base}/v1/execute", "-d", '{"stmt": {"sql": "SELECT 5 AS a"}}')
    tally.check("curl: version 1", status == 200 and '"value":"5"' in body, body)
    status, _, body = curl(f"{base}/", "-d", '{"statements": ["SELECT 5 AS a", {"q": "SELECT ?", "params": ["x"]}]}')
    tally.check("curl: before Hrana", status == 200 and '"rows":[[5]]' in body and '"rows":[["x"]]' in body, body)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(query.replace("1 + 1", f"length('{'x' * 2000000}')"))
        file.flush()
        status, _, body = curl(f"{base}/v2/pipeline", "-d", f"@{file.name}")
        tally.check("curl: 2 MB with 100-continue", status == 200 and '"2000000"' in body, body)
        status, _, body = curl(f"{base}/v2/pipeline", "-H", "Transfer-Encoding: chunked", "-d", f"@{file.name}")
        tally.check("curl: 2 MB in chunks", status == 200 and '"2000000"' in body, body)
    status, _, _ = curl(f"{base}/v2/pipeline", "-H", "Origin: http://evil.example", "-d", query)
    tally.check("curl: a foreign origin is refused", status == 403, status)
    status, _, _ = curl(f"{base}/v2/pipeline", "-H", "Host: evil.example", "-d", query)
    tally.check("curl: a foreign host is refused", status == 403, status)


def certificate(folder):
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


def url64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Signer:
    """An Ed25519 key, and JWTs signed with it."""
    def __init__(self, folder):
        self.private, self.public = os.path.join(folder, "jwt.pem"), os.path.join(folder, "jwt.pub")
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.private], check=True)
        subprocess.run(["openssl", "pkey", "-in", self.private, "-pubout", "-out", self.public], check=True)

    def token(self, **claims):
        head = url64(b'{"alg":"EdDSA","typ":"JWT"}') + "." + url64(json.dumps(claims).encode())
        with tempfile.NamedTemporaryFile() as file:
            file.write(head.encode())
            file.flush()
            sign = subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", self.private, "-rawin", "-in", file.name],
                                  check=True, capture_output=True).stdout
        return head + "." + url64(sign)


def token_tests(tally, server, signer):
    base, now = f"http://{server.address}", int(time.time())
    read = json.dumps({"requests": [{"type": "execute", "stmt": {"sql": "SELECT 1"}}, {"type": "close"}]})
    write = read.replace("SELECT 1", "CREATE TABLE IF NOT EXISTS made(a)")

    def ask(token, body, host=None):
        return curl(f"{base}/v2/pipeline", "-H", f"Authorization: Bearer {token}", "-d", body,
                    *(["-H", f"x-namespace: {host}"] if host else []))
    status, _, body = ask(signer.token(exp=now + 100), write, "one")
    tally.check("jwt: good", status == 200 and '"type":"ok"' in body, body)
    status, _, body = ask(signer.token(exp=now - 1), read)
    tally.check("jwt: expired", status == 401 and "AUTH_JWT_EXPIRED" in body, body)
    status, _, body = ask(signer.token(nbf=now + 1000), read)
    tally.check("jwt: immature", status == 401 and "AUTH_JWT_IMMATURE" in body, body)
    good = signer.token(exp=now + 100)
    status, _, body = ask(good[:-4] + ("AAAA" if good[-4:] != "AAAA" else "BBBB"), read)
    tally.check("jwt: a bad signature", status == 401 and "AUTH_JWT_INVALID" in body, body)
    none = url64(b'{"alg":"none"}') + "." + url64(b"{}") + "."
    tally.check("jwt: alg none", ask(none, read)[0] == 401)
    status, _, body = ask(signer.token(a="ro"), write, "one")
    tally.check("jwt: read only", status == 200 and "SQLITE_READONLY" in body, body)
    status, _, body = ask(signer.token(a="ro"), read, "one")
    tally.check("jwt: read only reads", status == 200 and '"type":"ok"' in body, body)
    status, _, body = ask(signer.token(id="one"), read, "two")
    tally.check("jwt: for another database", status == 403 and "AUTH_JWT_NOT_ALLOWED" in body, body)
    tally.check("jwt: for this database", ask(signer.token(id="one"), read, "one")[0] == 200)
    tally.check("jwt: none given", curl(f"{base}/v2/pipeline", "-d", read)[0] == 401)
    tally.check("health needs none", curl(f"{base}/health")[0] == 200)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/release")
    options = parser.parse_args()
    if not shutil.which("node") or not shutil.which("npm"):
        print("skipped: node and npm are needed")
        return 77
    weftd, folder, tally = str(ROOT / options.build / "weftd"), ROOT / "build/clients/libsql", Tally()
    install(folder)
    with tempfile.TemporaryDirectory() as place:
        with Server(weftd, os.path.join(place, "plain.weft")) as server:
            both(folder, tally, "plain", server, ("http", "ws"))
            curl_tests(tally, server)
        token = os.path.join(place, "token")
        pathlib.Path(token).write_text("a secret\n")
        with Server(weftd, os.path.join(place, "token.weft"), "--token-file", token) as server:
            both(folder, tally, "token", server, ("http", "ws"), "a secret")
        cert, key = certificate(place)
        with Server(weftd, os.path.join(place, "tls.weft"), "--tls-cert", cert, "--tls-key", key) as server:
            both(folder, tally, "tls", server, ("https", "wss"), None, cert)
        signer = Signer(place)
        with Server(weftd, os.path.join(place, "many"), "--jwt-key-file", signer.public, "--dir") as server:
            token_tests(tally, server, signer)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
