#!/usr/bin/env python3
"""Debian's clients of SQLite on libsqlite3.so.0: run.py --build DIR [NAME...]

Each client runs one session twice, with the library it came with and with ours in LD_LIBRARY_PATH;
both must print the same.  CPython's and APSW's own tests run on ours alone and are held against the
list of those that are known not to pass (known.txt; docs/compatibility.md has the reasons).
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SESSIONS = {
    "shell": ["sqlite3", "-batch", "{db}"],
    "perl": ["perl", "{here}/session.pl", "{db}"],
    "php": ["php8.2", "{here}/session.php", "{db}"],
    "ruby": ["ruby", "{here}/session.rb", "{db}"],
    "tcl": ["tclsh", "{here}/session.tcl", "{db}"],
    "sqlalchemy": ["/usr/bin/python3", "{here}/session_sqlalchemy.py", "{db}"],
    "django": ["/usr/bin/python3", "{here}/session_django.py", "{db}"],
}
APSW_TESTS = "/usr/lib/python3/dist-packages/apsw/tests.py"


def install():
    """Install what is missing; False: it cannot be had here."""
    wanted = [line for line in (HERE / "packages.txt").read_text().split("\n")
              if line and not line.startswith("#")]
    have = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Abbrev}${Package}\n"] + wanted,
                          capture_output=True, text=True, check=False).stdout
    have = {line[3:].strip() for line in have.splitlines() if line.startswith("ii")}
    missing = [name for name in wanted if name not in have]
    if not missing:
        return True
    if os.getuid() != 0:
        print("please install:", *missing)
        return False
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    subprocess.run(["apt-get", "update", "-q"], env=env, stdout=subprocess.DEVNULL, check=False)
    done = subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends"] + missing,
                          env=env, stdout=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def environment(library):
    env = dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC")
    if library is not None:
        env["LD_LIBRARY_PATH"] = str(library)
        # The shell compares it with what it was compiled against.
        env["WEFT_SQLITE_SOURCE_ID"] = subprocess.run(
            ["sqlite3", ":memory:", "SELECT sqlite_source_id()"], capture_output=True, text=True,
            check=False).stdout.strip()
    return env


def run_session(name, library):
    with tempfile.TemporaryDirectory() as folder:
        command = [part.format(here=HERE, db=folder + "/test.db") for part in SESSIONS[name]]
        text = (HERE / "session.sql").read_text() if name == "shell" else None
        done = subprocess.run(command, cwd=folder, env=environment(library), input=text,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=120, check=False)
        return done.stdout.replace(folder, "FOLDER") + f"exit {done.returncode}\n"


def session(name, library):
    wanted, found = run_session(name, None), run_session(name, library)
    diff = list(difflib.unified_diff(wanted.splitlines(), found.splitlines(), "its own", "ours",
                                     lineterm="", n=1))
    return "\n".join(diff)


def known():
    return {line.split()[0] for line in (HERE / "known.txt").read_text().splitlines()
            if line.strip() and not line.startswith("#")}


def judge(failed, prefix):
    """What failed and is not known to."""
    new = sorted(set(failed) - known())
    return "".join(f"{prefix}: {name}\n" for name in new)


def cpython(library):
    with tempfile.TemporaryDirectory() as folder:
        # Debian's Python has no tests of its own; another one may be about.
        python = os.environ.get("CPYTHON", "python3")
        probe = subprocess.run([python, "-c", "import test.test_sqlite3"], capture_output=True,
                               check=False)
        if probe.returncode != 0:
            return None
        done = subprocess.run([python, "-m", "test", "-v", "test_sqlite3"], cwd=folder,
                              env=environment(library), capture_output=True, text=True,
                              errors="replace", timeout=300, check=False)
    failed = re.findall(r"^(?:ERROR|FAIL): (\w+)", done.stdout, re.M)
    if "Total tests: run=" not in done.stdout:
        return done.stdout[-2000:]
    return judge(failed, "CPython")


def apsw(library):
    bad = []
    names = re.findall(r"^    def (test\w+)\(self\)", pathlib.Path(APSW_TESTS).read_text(), re.M)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                done = subprocess.run(["/usr/bin/python3", "-m", "apsw.tests", "APSW." + name],
                                      cwd=folder, env=environment(library), capture_output=True,
                                      text=True, errors="replace", timeout=60, check=False)
                # Some APSW leaves out by itself.
                if done.returncode != 0 and f"has no attribute '{name}'" not in done.stderr:
                    bad.append(name)
            except subprocess.TimeoutExpired:
                bad.append(name)
    for name in sorted(known() & set(names) - set(bad)):
        print(f"APSW: {name} passes and need not be listed")
    return judge(bad, "APSW")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("name", nargs="*")
    options = parser.parse_args()
    library = pathlib.Path(options.build).resolve()
    if not install():
        return 77
    passed = failed = 0
    for name in options.name or [*SESSIONS, "cpython", "apsw"]:
        if name == "cpython":
            trouble = cpython(library)
        elif name == "apsw":
            trouble = apsw(library)
        else:
            trouble = session(name, library)
        if trouble is None:
            print(f"{name}: skipped")
            continue
        print(f"{name}: {'FAILED' if trouble else 'ok'}", flush=True)
        if trouble:
            print(trouble)
        failed += bool(trouble)
        passed += not trouble
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
