#!/usr/bin/env python3
"""run.py -- instructions of short statements, beside SQLite and held to a committed baseline.

  run.py --build DIR                        measure and compare: status 1 if a row got worse by > 3 %
  run.py --build DIR --peer LIBRARY         the same beside SQLite, rows to --json
  run.py --build DIR --update [--why TEXT]  write baseline.json; rows that got worse need the reason

instr.c has the workloads; --part takes those with that in their name.  An operation's figure holds
all API calls and the driver's loop (about 15).  The profiles stay in DIR/../instr/ENGINE, one file a
workload: callgrind_annotate reads them.  Counts do not move with the machine's load, and hardly with the machine;
they do with the compiler, so a baseline taken with another compiler is not compared with (said aloud).
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BASELINE = HERE / "baseline.json"
WORSE, BETTER = 1.03, 0.97
# name -> the peer's instructions divided by ours that are wanted at least; else 1
GOALS = {"point_in_txn": 1.2, "point_autocommit": 2.0, "point_key3_in_txn": 1.2,
         "point_key3_autocommit": 2.0, "point_index_in_txn": 1.2, "point_index_autocommit": 2.0,
         "insert": 1.1, "update": 1.1, "delete": 1.1, "prepare_point": 0.83,
         "prepare_insert": 0.83, "prepare_five": 0.83}


def compiler_of(build):
    """The compiler of this build folder, as one line."""
    return subprocess.run([str(build / "bench" / "instr"), "--compiler"], capture_output=True,
                          text=True, check=True).stdout.strip()


def measure(program, library, profiles, part):
    """{name: (instructions an operation, answer)} of the workloads on one library."""
    shutil.rmtree(profiles, ignore_errors=True)
    profiles.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="weft-instr") as folder:
        result = subprocess.run(
            ["valgrind", "--tool=callgrind", "--toggle-collect=measured", "--dump-after=measured",
             "--compress-strings=no", f"--callgrind-out-file={profiles}/out", str(program),
             str(library), folder] + ([part] if part else []),
            capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"instr: {library}: status {result.returncode}\n{result.stderr[-3000:]}")
    rows = {}
    for number, line in enumerate(result.stdout.splitlines(), 1):
        name, times, answer = line.split()
        path = profiles / f"out.{number}"
        total = re.search(r"^totals: (\d+)$", path.read_text(errors="replace"), re.M)
        rows[name] = (round(int(total.group(1)) / int(times), 1), int(answer))
        path.rename(profiles / name)
    return rows


def verdicts(rows, baseline):
    """[(name, instructions, baseline's, verdict)]; a verdict that begins with FAILED fails."""
    found = []
    for name, (count, answer) in rows.items():
        entry = baseline.get(name)
        if entry is None:
            found.append((name, count, None, "FAILED: not in the baseline"))
        elif answer != entry["answer"]:
            found.append((name, count, entry["instructions"],
                          f"FAILED: answer {answer}, not {entry['answer']}"))
        else:
            ratio = count / entry["instructions"]
            verdict = "FAILED: worse" if ratio > WORSE else \
                "better: make instr-baseline keeps it" if ratio < BETTER else "ok"
            found.append((name, count, entry["instructions"], f"{verdict} ({ratio:.3f} x)"))
    found += [(name, None, entry["instructions"], "FAILED: not measured")
              for name, entry in baseline.items() if name not in rows]
    return found


def self_check():
    """The comparison itself must be able to fail."""
    base = {"a": {"instructions": 1000, "answer": 7}}
    told = [verdicts({"a": row}, base)[0][3] for row in ((1029, 7), (1031, 7), (960, 7), (1000, 8))]
    told += [verdicts({}, base)[0][3], verdicts({"b": (1, 1)}, {})[0][3]]
    if [t.split(":")[0].split(" ")[0] for t in told] != ["ok", "FAILED", "better", "FAILED", "FAILED",
                                                         "FAILED"]:
        sys.exit(f"instr: the comparison is wrong: {told}")


def compare(rows, build):
    stored = json.loads(BASELINE.read_text())
    if stored["compiler"] != compiler_of(build):
        print(f"SKIPPED: the baseline was taken with {stored['compiler']}, this is "
              f"{compiler_of(build)}: `make instr-baseline` before and after a change compares")
        return 0
    failed = 0
    for name, count, before, verdict in verdicts(rows, stored["rows"]):
        print(f"{'not ok' if verdict.startswith('FAILED') else 'ok'} instr.{name:20} "
              f"{count} instructions, baseline {before}: {verdict}")
        failed += verdict.startswith("FAILED")
    return 1 if failed else 0


def update(rows, build, why):
    stored = json.loads(BASELINE.read_text()) if BASELINE.exists() else {"rows": {}}
    before = stored["rows"] if stored.get("compiler") == compiler_of(build) else {}
    worse = [name for name, (count, _) in rows.items()
             if name in before and count > before[name]["instructions"] * WORSE]
    if worse and not why:
        sys.exit(f"instr: worse than the baseline: {', '.join(worse)}; give the reason: "
                 "make instr-baseline WHY='...'")
    kept = {}
    for name, (count, answer) in rows.items():
        kept[name] = {"instructions": count, "answer": answer}
        reason = why if name in worse else before.get(name, {}).get("why")
        if reason:
            kept[name]["why"] = reason
        if name in before:
            print(f"{name:20} {before[name]['instructions']:>10} -> {count:>10}")
    BASELINE.write_text(json.dumps({"compiler": compiler_of(build), "rows": kept}, indent=1) + "\n")
    return 0


def append_rows(rows, peer_rows, path):
    """Print and keep the rows beside SQLite; False if an answer differs."""
    agreed = True
    with open(path, "a", encoding="utf-8") as out:
        for name, (count, answer) in rows.items():
            peer, peer_answer = peer_rows[name]
            if answer != peer_answer:
                print(f"instr.{name}: DIFFERENT ANSWERS: {answer} and {peer_answer}")
                agreed = False
                continue
            ratio, goal = peer / count, GOALS.get(name, 1.0)
            print(f"instr.{name:24} {count:10.0f} {peer:10.0f} {ratio:7.2f} x  goal {goal:.2f} "
                  f"{'met' if ratio >= goal else '-'}", flush=True)
            json.dump({"name": f"instr.{name}", "weft": count, "peer": peer, "peer_name": "sqlite",
                       "unit": "instructions", "ratio": round(ratio, 3), "spread": None,
                       "goal": goal, "met": ratio >= goal, "device": "memory"}, out)
            out.write("\n")
    return agreed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--peer")
    parser.add_argument("--json", default="build/bench.jsonl")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--why")
    parser.add_argument("--part")
    options = parser.parse_args()
    self_check()
    if shutil.which("valgrind") is None:
        sys.exit("instr: valgrind is missing")
    program = options.build / "bench" / "instr"
    profiles = options.build.parent / "instr"
    rows = measure(program, options.build / "libsqlite3.so.0", profiles / "weft", options.part)
    if options.update:
        return update(rows, options.build, options.why)
    agreed = True
    if options.peer:
        peer_rows = measure(program, options.peer, profiles / "sqlite", options.part)
        agreed = append_rows(rows, peer_rows, options.json)
    if options.part:
        return 0 if agreed else 1
    return compare(rows, options.build) or (0 if agreed else 1)


if __name__ == "__main__":
    sys.exit(main())
