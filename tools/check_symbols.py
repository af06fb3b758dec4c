#!/usr/bin/env python3
"""check_symbols.py BUILD -- what leaves the libraries, and what state hides in them.

Exported names: only weft_* from libweft.so, only sqlite3_* from libsqlite3.so.0; every name that
src/capi/names.txt lists must be there.  Writable data: no folder above
rt/ may have any, nor a thread-local, because everything that exists once per process hangs on the
Process object (only then can the simulator crash one).  Status 1 on any finding.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FREE_OF_STATE = ("store", "value", "sql", "exec", "func", "session", "capi", "server")
WRITABLE = re.compile(r"^\.(data|bss|tdata|tbss)(\.|$)")
# The compiler's own bookkeeping in instrumented builds.
IGNORED = re.compile(r"^(__|\.L|_GLOBAL__|asan|\.data|\.bss|\.tdata|\.tbss)")


def excused():
    names = set()
    for line in (ROOT / "tools/excuses.txt").read_text().splitlines():
        words = line.split("#", 1)[0].split(":", 1)[0].split()
        if len(words) == 2 and words[0] == "symbol":
            names.add(words[1])
    return names


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def exported(library):
    lines = output_of("nm", "-D", "--defined-only", str(library)).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.strip()}


def check_exports(build, library, prefix):
    path = build / library
    if not path.exists():
        return 0
    names = exported(path)
    strangers = sorted(name for name in names if not name.startswith((prefix, prefix[:-1] + "session_")))
    for name in strangers:
        print(f"{library}: exports {name}, only {prefix}* may leave it")
    missing = []
    wanted = ROOT / "src" / "capi" / "names.txt"
    if prefix == "sqlite3_" and wanted.exists():
        listed = wanted.read_text().split()
        missing = sorted(w for w in listed if w and w not in names)
        for name in missing:
            print(f"{library}: does not export {name}")
    print(f"symbols: {library} exports {len(names)} names")
    return len(strangers) + len(missing)


def check_state(build, folder, forgiven):
    path = build / "src" / folder / f"lib{folder}.a"
    if not path.exists():
        return 0
    bad = 0
    member = "?"
    for line in output_of("objdump", "-t", str(path)).splitlines():
        if ":     file format" in line:
            member = line.split(":")[0]
            continue
        match = re.match(r"^[0-9a-f]{8,} (.{7}) (\S+)\s+([0-9a-f]+)\s+(?:\.hidden )?(\S+)$", line)
        if not match:
            continue
        flags, section, size, name = match.groups()
        if section.startswith(".data.rel.ro") or int(size, 16) == 0 or "d" in flags:
            continue
        if (WRITABLE.match(section) or section == "*COM*") and not IGNORED.match(name) \
                and name.split(".")[0] not in forgiven:
            print(f"src/{folder}: {member}: {name} is writable data ({section}); "
                  "hang it on the process object")
            bad += 1
    return bad


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release")
    forgiven = excused()
    bad = check_exports(build, "libweft.so", "weft_")
    bad += check_exports(build, "libsqlite3.so.0", "sqlite3_")
    for folder in FREE_OF_STATE:
        bad += check_state(build, folder, forgiven)
    print(f"symbols: {bad} findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
