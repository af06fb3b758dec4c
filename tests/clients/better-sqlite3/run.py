#!/usr/bin/env python3
"""better-sqlite3 from npm with the engine compiled into it: run.py --build DIR

Compiles the addon twice, with the SQLite it ships and with our pair of files in its place (the same
macros), runs session.cjs with both and compares what they print.  Without node, npm or a C++ compiler
it says so and ends with status 77.
"""
import argparse
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
PACKAGE = "better-sqlite3@12.4.1"


def install(folder):
    if not (folder / "node_modules/better-sqlite3/src").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}\n')
        subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent",
                        PACKAGE], cwd=folder, check=True)
    return folder / "node_modules/better-sqlite3"


def node_headers():
    node = pathlib.Path(shutil.which("node")).resolve()
    for place in (node.parent.parent / "include/node", pathlib.Path("/usr/include/node")):
        if (place / "node.h").exists():
            return place
    return None


def compile_addon(package, amalgamation, name):
    """NAME.node from the addon's source and AMALGAMATION, with the macros of its own build."""
    out = package.parent.parent / f"{name}.node"
    macros = re.findall(r"'((?:SQLITE_|HAVE_)\w+(?:=[\w-]+)?)'",
                        (package / "deps/defines.gypi").read_text())
    flags = ["-O1", "-fPIC", "-fvisibility=hidden", "-w"] + [f"-D{macro}" for macro in macros]
    engine = out.with_suffix(".o")
    source = amalgamation / "sqlite3.c"
    if not engine.exists() or engine.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["cc", *flags, "-c", source, "-o", engine], check=True)
    addon = out.with_suffix(".addon.o")
    if not addon.exists():
        subprocess.run(["c++", *flags, "-std=c++20", "-DNODE_GYP_MODULE_NAME=better_sqlite3",
                        f"-I{node_headers()}", f"-I{amalgamation}", "-c",
                        package / "src/better_sqlite3.cpp", "-o", addon], check=True)
    subprocess.run(["c++", "-shared", "-Wl,-Bsymbolic", addon, engine, "-lpthread", "-lm",
                    "-o", out], check=True)
    return out


def session(package, addon):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["node", HERE / "session.cjs", addon, folder], text=True, check=False,
                              env=dict(os.environ, NODE_PATH=str(package.parent)), timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return (done.stdout.replace(folder, "FOLDER") + f"exit {done.returncode}\n").splitlines()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options = parser.parse_args()
    if not all(map(shutil.which, ("node", "npm", "c++"))) or node_headers() is None:
        print("better-sqlite3: needs node with its headers, npm and a C++ compiler")
        return 77
    folder = options.build.resolve().parent / "clients/better-sqlite3"
    package = install(folder)
    subprocess.run([ROOT / "tools/amalgamate.py", options.build, folder / "pair"], check=True)
    theirs = session(package, compile_addon(package, package / "deps/sqlite3", "sqlite"))
    ours = session(package, compile_addon(package, folder / "pair", "weft"))
    diff = list(difflib.unified_diff(theirs, ours, "SQLite", "Weft", lineterm="", n=0))
    print("\n".join(diff))
    if not theirs[-2].startswith("closed:"):
        print("\n".join(theirs), "the session does not run with SQLite itself", sep="\n")
        return 1
    failed = sum(line.startswith("-") for line in diff[2:])
    print(f"{len(theirs) - 1 - failed} passed, {failed} failed")
    return 1 if diff else 0


sys.exit(main())
