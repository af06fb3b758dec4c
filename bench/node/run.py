#!/usr/bin/env python3
"""Weft, SQLite and Turso under node: run.py --build DIR --peer LIBRARY [--json FILE] [--rows N]

Turso's package for npm has no C API, so this part of the comparison runs under node: the same
statements (load.mjs) through better-sqlite3's addon, which is linked with libsqlite3.so.0 and runs
on Weft's or on SQLite's, and through @tursodatabase/database.  One process an engine and round, in
turn; the answers of all three must be the same.  What cannot be installed is told as missing.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.dont_write_bytecode = True
SQLITE_NODE, TURSO = "better-sqlite3@12.4.1", "@tursodatabase/database"


def install(folder):
    """The packages, once."""
    modules = folder / "node_modules"
    if not (modules / "better-sqlite3/src").exists() or not (modules / TURSO).exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}\n')
        subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent",
                        SQLITE_NODE, TURSO], cwd=folder, check=True)
    return modules


def node_headers():
    node = pathlib.Path(shutil.which("node")).resolve()
    for place in (node.parent.parent / "include/node", pathlib.Path("/usr/include/node")):
        if (place / "node.h").exists():
            return place
    return None


def build_addon(folder, modules, peer):
    """The addon without an engine in it: it takes libsqlite3.so.0 from the loader."""
    out = folder / "sqlite3_api.node"
    package = modules / "better-sqlite3"
    libraries = folder / "sqlite"
    libraries.mkdir(exist_ok=True)
    shutil.copy(peer, libraries / "libsqlite3.so.0")
    if not out.exists():
        subprocess.run(["c++", "-O1", "-fPIC", "-w", "-std=c++20", "-shared", "-DNDEBUG",
                        "-DNODE_GYP_MODULE_NAME=better_sqlite3", f"-I{node_headers()}",
                        f"-I{package / 'deps/sqlite3'}", package / "src/better_sqlite3.cpp",
                        libraries / "libsqlite3.so.0", "-o", out], check=True)
    return out, libraries


def one_round(engine, folder, modules, addon, libraries, rows):
    env = dict(os.environ, MODULES=str(folder), NODE_PATH=str(modules),
               LD_PRELOAD=str(libraries / "libsqlite3.so.0") if libraries else "")
    done = subprocess.run(["node", HERE / "load.mjs", engine, addon, str(rows)], env=env, text=True,
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def agree(results, works):
    good = True
    for work in works:
        answers = {name: rounds[0][work]["answer"] for name, rounds in results.items()}
        if len(set(answers.values())) != 1:
            print(f"node.{work}: the answers differ: "
                  + ", ".join(f"{name} {text[:60]}" for name, text in answers.items()))
            good = False
    return good


def report(results, work, peer, json_file):
    weft = [r[work]["seconds"] for r in results["weft"]]
    theirs = [r[work]["seconds"] for r in results[peer]]
    ratios = [b / a for a, b in zip(weft, theirs)]
    row = {"name": f"node.{work}_{peer}", "weft": statistics.median(weft) * 1000,
           "peer": statistics.median(theirs) * 1000, "peer_name": peer, "unit": "ms",
           "ratio": statistics.median(ratios), "spread": [min(ratios), max(ratios)],
           "goal": None, "met": None, "device": "memory"}
    print(f"{row['name']:34} {row['weft']:10.1f} {row['peer']:10.1f} ms "
          f"{row['ratio']:8.2f} x  ({min(ratios):.2f}..{max(ratios):.2f})", flush=True)
    with open(json_file, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--peer", type=pathlib.Path, required=True)
    parser.add_argument("--json", default="build/bench.jsonl")
    parser.add_argument("--rows", type=int, default=200000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not all(map(shutil.which, ("node", "npm", "c++"))) or node_headers() is None:
        print("bench: node with its headers, npm and a C++ compiler are needed for Turso: missing",
              file=sys.stderr)
        return 0
    folder = (ROOT / "build/node").resolve()
    try:
        modules = install(folder)
    except subprocess.CalledProcessError:
        print("bench: Turso (npm's @tursodatabase/database) cannot be had: missing", file=sys.stderr)
        return 0
    addon, sqlite = build_addon(folder, modules, options.peer)
    weft = options.build.resolve()
    results = {"weft": [], "sqlite": [], "turso": []}
    for _ in range(options.rounds):
        for name, engine, libraries in (("weft", "sqlite3-api", weft), ("turso", "turso", None),
                                        ("sqlite", "sqlite3-api", sqlite)):
            results[name].append(one_round(engine, folder, modules, addon, libraries, options.rows))
    works = list(results["weft"][0])
    for work in works:
        for peer in ("turso", "sqlite"):
            report(results, work, peer, options.json)
    return 0 if agree(results, works) else 1


sys.exit(main())
