#!/usr/bin/env python3
"""Replay recorded SQLite sessions against a library with the sqlite3 C API and compare answers.

The data are JSON lines (xz-packed or plain): a header, then one session a line.  Each session runs
in an empty directory; its statements are compared with what SQLite answered.  A worker process
runs a batch of sessions, so that a crash costs one session and is named.  Where a session copies or
deletes a database file, its log goes with it: a file that is open is complete only with its log.

usage: run.py --lib LIBRARY DATA [--file NAME] [--session N] [--without PREFIX] [--all FILE]
              [--limit N] [--verbose] [--top N]
Prints a line a failing statement (with --verbose; all of them as JSON lines with --all) and at the
end first mismatches by reason, then sessions, files and statements that are as SQLite's, wrong
results and missing errors, and how many failing statements fail with SQLite's code and text.
Exit status 0 unless a worker cannot start.
"""
import argparse
import collections
import ctypes
import glob
import hashlib
import json
import lzma
import multiprocessing
import os
import shutil
import sys
import tempfile

ROW, DONE = 100, 101
TRANSIENT = ctypes.c_void_p(-1)
# SQLITE_DBCONFIG_*, in small letters, as the data name them.
DBCONFIG = {name: 1002 + at for at, name in enumerate(
    """enable_fkey enable_trigger enable_fts3_tokenizer enable_load_extension no_ckpt_on_close
    enable_qpsg trigger_eqp reset_database defensive writable_schema legacy_alter_table dqs_dml
    dqs_ddl enable_view legacy_file_format trusted_schema""".split())}


class Api:
    def __init__(self, path):
        lib = ctypes.CDLL(path)
        self.lib = lib
        p, i, ll, s = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong, ctypes.c_char_p
        for name, result, args in [
                ("open_v2", i, [s, ctypes.POINTER(p), i, p]), ("close_v2", i, [p]),
                ("prepare_v2", i, [p, s, i, ctypes.POINTER(p), ctypes.POINTER(s)]),
                ("step", i, [p]), ("finalize", i, [p]), ("errmsg", s, [p]),
                ("extended_errcode", i, [p]), ("column_count", i, [p]), ("column_type", i, [p, i]),
                ("column_int64", ll, [p, i]), ("column_double", ctypes.c_double, [p, i]),
                ("column_blob", p, [p, i]), ("column_text", p, [p, i]), ("column_bytes", i, [p, i]),
                ("column_name", s, [p, i]), ("changes", i, [p]), ("last_insert_rowid", ll, [p]),
                ("bind_null", i, [p, i]), ("bind_int64", i, [p, i, ll]),
                ("bind_double", i, [p, i, ctypes.c_double]), ("bind_text", i, [p, i, p, i, p]),
                ("bind_blob", i, [p, i, p, i, p]), ("bind_parameter_index", i, [p, s]),
                ("libversion", s, []), ("value_int64", ll, [p]),
                ("create_function_v2", i, [p, s, i, i, p, p, p, p, p]),
                ("create_collation_v2", i, [p, s, i, p, p, p]), ("result_value", None, [p, p]),
                ("result_null", None, [p])]:
            function = getattr(lib, "sqlite3_" + name)
            function.restype, function.argtypes = result, args
            setattr(self, name, function)


FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
                           ctypes.c_int, ctypes.c_void_p)


def reverse_compare(_, left_bytes, left, right_bytes, right):
    a, b = ctypes.string_at(left, left_bytes), ctypes.string_at(right, right_bytes)
    return (a < b) - (a > b)


def identity(api):
    def call(context, count, values):
        if count == 0:
            api.result_null(context)
        else:
            api.result_value(context, values[0])
    return FUNCTION(call)


def value_of(api, stmt, column):
    kind = api.column_type(stmt, column)
    if kind == 5:
        return None
    if kind == 1:
        return api.column_int64(stmt, column)
    if kind == 2:
        r = api.column_double(stmt, column)
        return {"r": repr(r)}
    pointer = api.column_text(stmt, column) if kind == 3 else api.column_blob(stmt, column)
    data = ctypes.string_at(pointer, api.column_bytes(stmt, column)) if pointer else b""
    if kind == 4:
        return {"b": data.hex()}
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"t": data.hex()}


def same(a, b):
    if isinstance(a, dict) and isinstance(b, dict) and "r" in a and "r" in b:
        x, y = float(a["r"]), float(b["r"])
        return x == y or abs(x - y) <= 1e-14 * max(abs(x), abs(y))
    return type(a) is type(b) and a == b


def same_rows(got, want):
    return len(got) == len(want) and all(
        len(g) == len(w) and all(same(x, y) for x, y in zip(g, w)) for g, w in zip(got, want))


def line_of(row):
    return json.dumps(row, separators=(",", ":"))


class Session:
    def __init__(self, api, where):
        self.api, self.where, self.db = api, where, {}
        self.keep = [identity(api), COMPARE(reverse_compare)]

    def text(self, value):
        return value.replace("%CWD%", self.where) if isinstance(value, str) else value

    def bind(self, stmt, params):
        for name, value in params.items():
            index = int(name[1:]) if name[0] == "#" else self.api.bind_parameter_index(
                stmt, name.encode())
            if index == 0:
                continue
            value = self.text(value)
            if value is None:
                self.api.bind_null(stmt, index)
            elif isinstance(value, int):
                self.api.bind_int64(stmt, index, value)
            elif isinstance(value, str):
                data = value.encode()
                self.api.bind_text(stmt, index, data, len(data), TRANSIENT)
            elif "r" in value:
                self.api.bind_double(stmt, index, float(value["r"]))
            elif "b" in value:
                data = bytes.fromhex(value["b"])
                self.api.bind_blob(stmt, index, data, len(data), TRANSIENT)
            else:
                data = bytes.fromhex(value["t"])
                self.api.bind_text(stmt, index, data, len(data), TRANSIENT)

    def sql(self, op):
        api, db = self.api, self.db.get(op["c"])
        if db is None:
            return None
        text = self.text(op["s"]).encode("utf-8", "surrogatepass")
        stmt, tail = ctypes.c_void_p(), ctypes.c_char_p()
        code = api.prepare_v2(db, text, len(text), ctypes.byref(stmt), ctypes.byref(tail))
        rows, names = [], []
        if code == 0 and stmt.value:
            self.bind(stmt, op.get("p", {}))
            count = api.column_count(stmt)
            names = [(api.column_name(stmt, k) or b"").decode("utf-8", "replace")
                     for k in range(count)]
            code = api.step(stmt)
            while code == ROW:
                rows.append([value_of(api, stmt, k) for k in range(api.column_count(stmt))])
                if op.get("first"):
                    break
                code = api.step(stmt)
        error = None
        if code not in (0, ROW, DONE):
            error = [api.extended_errcode(db), (api.errmsg(db) or b"").decode("utf-8", "replace")]
        if stmt.value:
            api.finalize(stmt)
        return rows, names, error

    def judge(self, op, result):
        """None: as SQLite; else the reason."""
        if result is None:
            return None if op.get("cmp") == "none" else "no connection"
        rows, _, error = result
        if op.get("cmp") == "none":
            return None
        if "err" in op:
            return None if error else "should fail: " + op["err"][1]
        if error:
            return "error: " + error[1]
        if op.get("cmp") == "ok":
            return None
        for column in op.get("mask", []):
            for row in rows:
                if column < len(row):
                    row[column] = None
        if "dig" in op:
            lines = [line_of(row) for row in rows]
            if op.get("cmp") == "set":
                lines.sort()
            digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
            return None if op["dig"] == [len(rows), digest] else "rows differ (digest)"
        want = [[self.text(v) for v in row] for row in op.get("rows", [])]
        if same_rows(rows, want):
            return None
        if op.get("cmp") == "set" and same_rows(sorted(rows, key=line_of),
                                                sorted(want, key=line_of)):
            return None
        return "rows differ"

    def close(self):
        for db in self.db.values():
            self.api.close_v2(db)
        self.db = {}

    @staticmethod
    def remove(name):
        paths = [name + suffix for suffix in ("", "-journal", "-wal", "-shm")]
        for path in paths + glob.glob(glob.escape(name) + "-log.*"):
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            elif os.path.exists(path):
                os.unlink(path)

    @staticmethod
    def copy(name, to):
        for log in glob.glob(glob.escape(to) + "-log.*"):
            os.unlink(log)
        shutil.copyfile(name, to)
        for log in glob.glob(glob.escape(name) + "-log.*"):
            shutil.copyfile(log, to + log[len(name):])

    def configure(self, op):
        number = DBCONFIG.get(op["k"])
        if number is not None:
            now = ctypes.c_int()
            self.api.lib.sqlite3_db_config(self.db[op["c"]], number, ctypes.c_int(op["v"]),
                                           ctypes.byref(now))

    def step(self, op):
        kind = op["op"]
        if kind == "open":
            if op["c"] in self.db:
                self.api.close_v2(self.db.pop(op["c"]))
            db = ctypes.c_void_p()
            code = self.api.open_v2(self.text(op["f"]).encode(), ctypes.byref(db), op["fl"], None)
            if code == 0:
                self.db[op["c"]] = db
            elif db.value:
                self.api.close_v2(db)
        elif kind == "close":
            if op["c"] in self.db:
                self.api.close_v2(self.db.pop(op["c"]))
        elif kind == "rm":
            for name in op["f"]:
                self.remove(self.text(name))
        elif kind == "cp":
            if os.path.isfile(self.text(op["f"])):
                self.copy(self.text(op["f"]), self.text(op["to"]))
        elif kind == "cfg" and op["c"] in self.db:
            self.configure(op)
        elif kind == "func" and op["c"] in self.db:
            self.api.create_function_v2(self.db[op["c"]], op["n"].encode(), op["a"],
                                        1 | op.get("fl", 0), None,
                                        ctypes.cast(self.keep[0], ctypes.c_void_p), None, None,
                                        None)
        elif kind == "coll" and op["c"] in self.db:
            self.api.create_collation_v2(self.db[op["c"]], op["n"].encode(), 1, None,
                                         ctypes.cast(self.keep[1], ctypes.c_void_p), None)
        elif kind == "sql":
            result = self.sql(op)
            return self.judge(op, result), result
        return None


def run_session(api, session):
    """(statements, matches, reasons) of one session; reasons: (statement, reason, op)."""
    where = os.path.realpath(tempfile.mkdtemp(prefix="sweep-"))
    old = os.getcwd()
    os.chdir(where)
    run = Session(api, where)
    statements = matches = 0
    reasons, errors = [], [0, 0, []]
    try:
        for op in session["ops"]:
            answer = run.step(op)
            if op["op"] != "sql":
                continue
            statements += 1
            count_error(run, op, answer, errors)
            if answer is None or answer[0] is None:
                matches += 1
            elif op.get("frag") or op.get("vd"):
                matches += 1
            else:
                reasons.append((op["s"], answer[0], op.get("rows"),
                                answer[1][0][:5] if answer[1] else None))
    finally:
        run.close()
        os.chdir(old)
        shutil.rmtree(where, ignore_errors=True)
    return statements, matches, reasons, errors


def count_error(run, op, answer, errors):
    """errors: failing statements, those with SQLite's code and text, the others."""
    if "err" not in op or op.get("cmp") == "none" or op.get("vd") or op.get("frag"):
        return
    if answer is None or answer[1] is None or not answer[1][2]:
        return
    want = [op["err"][0], run.text(op["err"][1])]
    errors[0] += 1
    if answer[1][2] == want:
        errors[1] += 1
    else:
        errors[2].append((op["s"], want, answer[1][2]))


def worker(lib, pipe):
    api = Api(lib)
    while True:
        session = pipe.recv()
        if session is None:
            return
        pipe.send(run_session(api, session))


class Pool:
    """One worker at a time, started again when it dies or hangs."""

    def __init__(self, lib, seconds):
        self.lib, self.seconds, self.process = lib, seconds, None

    def start(self):
        self.pipe, child = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=worker, args=(self.lib, child), daemon=True)
        self.process.start()
        child.close()

    def run(self, session):
        if self.process is None:
            self.start()
        try:
            self.pipe.send(session)
            if self.pipe.poll(self.seconds):
                return self.pipe.recv()
            reason = "hang"
        except (EOFError, BrokenPipeError, ConnectionResetError):
            reason = "crash"
        self.process.kill()
        self.process.join()
        self.process = None
        return (len(session["ops"]), 0, [(session["ops"][-1].get("s", ""), reason, None, None)],
                [0, 0, []])

    def stop(self):
        if self.process is not None:
            self.process.kill()


def sessions_of(path):
    opener = lzma.open if path.endswith(".xz") else open
    with opener(path, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            yield json.loads(line)


def shape(reason):
    """Reasons with their names and numbers taken out, for counting."""
    head = reason.split(":")[0] if reason.startswith(("rows", "crash", "hang")) else reason
    return head[:70]


class Report:
    """What is counted over all sessions."""

    def __init__(self, path):
        self.out = open(path, "w", encoding="utf-8") if path else None
        self.sessions = self.clean = self.statements = self.matches = 0
        self.failing = self.same_error = self.wrong = self.missing = 0
        self.first, self.files = collections.Counter(), {}

    def add(self, session, result, verbose):
        done, good, reasons, errors = result
        name = session["file"]
        self.sessions, self.clean = self.sessions + 1, self.clean + (not reasons)
        self.statements, self.matches = self.statements + done, self.matches + good
        self.failing, self.same_error = self.failing + errors[0], self.same_error + errors[1]
        self.wrong += sum(r[1].startswith("rows differ") for r in reasons)
        self.missing += sum(r[1].startswith("should fail") for r in reasons)
        self.files[name] = self.files.get(name, True) and not reasons
        if reasons:
            self.first[shape(reasons[0][1])] += 1
        if self.out:
            for kind, list_ in (("mismatch", reasons), ("error", errors[2])):
                for item in list_:
                    line = [name, session["sess"], kind] + list(item)
                    self.out.write(json.dumps(line) + "\n")
        if not verbose:
            return
        for sql, reason, want, got in reasons[:5]:
            print(f"{name} {session['sess']}: {reason}\n    {sql[:300]}")
            if want is not None and reason.startswith("rows"):
                print(f"    want {str(want)[:200]}\n    got  {str(got)[:200]}")

    def show(self, top):
        for reason, times in self.first.most_common(top):
            print(f"{times:6} {reason}")
        clean = sum(self.files.values())
        print(f"{self.sessions} sessions, {self.clean} clean; {len(self.files)} files, {clean} "
              f"clean ({percent(clean, len(self.files))}); {self.statements} statements, "
              f"{self.matches} as SQLite ({percent(self.matches, self.statements)})")
        print(f"{self.wrong} rows differ, {self.missing} should fail; of {self.failing} failing "
              f"{self.same_error} with code and text ({percent(self.same_error, self.failing)})")


def percent(part, whole):
    return f"{100.0 * part / max(whole, 1):.2f} %"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--lib", required=True)
    parser.add_argument("--file")
    parser.add_argument("--session", type=int)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="take each Nth session")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--top", type=int, default=40)
    parser.add_argument("--seconds", type=int, default=20, help="longest session")
    parser.add_argument("--without", action="append", default=[],
                        help="leave out files whose name begins so")
    parser.add_argument("--all", help="every mismatch as a JSON line into this file")
    args = parser.parse_args()
    report = Report(args.all)
    pool = Pool(os.path.realpath(args.lib), args.seconds)
    for number, session in enumerate(sessions_of(args.data)):
        if args.file and session["file"] != args.file:
            continue
        if args.session is not None and session["sess"] != args.session:
            continue
        if number % args.every or session["file"].startswith(tuple(args.without)):
            continue
        report.add(session, pool.run(session), args.verbose)
        if args.limit and report.sessions >= args.limit:
            break
    pool.stop()
    report.show(args.top)


main()
