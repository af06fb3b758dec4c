"""quack.py -- a Quack client and a weftd to talk to, for tests and examples; standard library only.

    with Server(weftd, "app.weft", create=True) as server:
        with server.connect() as c:
            print(c.query("SELECT ?1 + 1", [41]))       # [[42]]
"""
import base64
import json
import os
import re
import select
import signal
import socket
import subprocess
import time


class QuackError(Exception):
    def __init__(self, error):
        super().__init__(f"{error.get('name')}: {error.get('message')}")
        self.code, self.name = error.get("code"), error.get("name")
        self.message, self.error = error.get("message"), error


class Closed(Exception):
    """The server closed the connection."""


def blob(data):
    return {"base64": base64.b64encode(data).decode()}


class Client:
    def __init__(self, address, timeout=60):
        if address.startswith("unix:"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(address[5:])
        else:
            host, port = address.rsplit(":", 1)
            self.socket = socket.create_connection((host, int(port)), timeout=timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.socket.sendall(b"\n")     # Who speaks first gets the banner at once.
        self.banner = self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send_bytes(self, data):
        self.socket.sendall(data)

    def send(self, **request):
        self.send_bytes(json.dumps(request).encode() + b"\n")

    def receive_line(self):
        while b"\n" not in self.buffer:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionError as gone:
                raise Closed(str(gone)) from gone
            if not data:
                raise Closed("end of stream")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def receive(self):
        return json.loads(self.receive_line())

    def answer(self):
        """The lines of one answer: (cols, rows, last line).  An error raises."""
        cols, rows = None, []
        while True:
            line = self.receive()
            if "row" in line:
                rows.append(line["row"])
            elif "err" in line:
                raise QuackError(line["err"])
            elif "cols" in line and "handle" not in line:
                cols = line["cols"]
            else:
                return cols, rows, line

    def call(self, **request):
        self.send(**request)
        return self.answer()

    def query(self, sql, params=None, **more):
        if params is not None:
            more["params"] = params
        return self.call(q=sql, **more)[1]

    def run(self, sql, params=None, **more):
        """The last line of the answer."""
        if params is not None:
            more["params"] = params
        return self.call(q=sql, **more)[2]


def wait_running(client, count=1):
    """Until so many statements of others run on the server."""
    deadline = time.monotonic() + 60
    while client.query("SELECT count(*) FROM weft_sessions WHERE state = 'running'")[0][0] != count + 1:
        if time.monotonic() > deadline:
            raise TimeoutError("nothing runs")
        time.sleep(0.01)


class Server:
    def __init__(self, weftd, path, *options, create=True, env=None):
        self.command = [weftd, *(["--create"] if create else []), "--listen", "127.0.0.1:0",
                        *options, path]
        self.env = dict(os.environ, **(env or {}))
        self.process, self.addresses, self.log = None, [], b""
        self.start()

    def start(self, listeners=None, timeout=60):
        listeners = listeners or 1 + self.command.count("--unix") + self.command.count("--listen") - 1
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=self.env)
        self.addresses, text = [], b""
        deadline = time.monotonic() + timeout
        while len(self.addresses) < listeners:
            ready, _, _ = select.select([self.process.stdout], [], [], deadline - time.monotonic())
            data = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not data:
                self.process.kill()
                raise RuntimeError(f"weftd did not start: {self.process.stderr.read().decode()}")
            text += data
            self.addresses = re.findall(r"^listening on (.*)$", text.decode(), re.M)

    @property
    def address(self):
        return self.addresses[0]

    def connect(self, which=0, timeout=60):
        return Client(self.addresses[which], timeout)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.wait()

    def terminate(self, timeout=60):
        self.process.send_signal(signal.SIGTERM)
        return self.wait(timeout)

    def wait(self, timeout=60):
        """Wait for the end; its status.  What it wrote to standard error is in self.log."""
        _, self.log = self.process.communicate(timeout=timeout)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            try:
                self.terminate(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.wait()
