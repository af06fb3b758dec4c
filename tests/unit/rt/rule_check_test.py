#!/usr/bin/env python3
"""rule_check.py finds what it is there to find, and nothing else.

usage: rule_check_test.py RULE_CHECK

Method: a small tree with one broken rule a file, and one file that keeps them all.
"""
import pathlib
import subprocess
import sys
import tempfile

CASES = {
    "store/clock.c": ("#include <time.h>\n", "includes <time.h>"),
    "sql/threads.c": ("#include <pthread.h>\n", "includes <pthread.h>"),
    "server/sockets.c": ("#include <sys/socket.h>\n", "includes <sys/socket.h>"),
    "exec/files.c": ("static void\nf(void)\n{\n    fopen(\"x\", \"r\");\n}\n", "calls fopen()"),
    "func/chance.c": ("static int\nf(void)\n{\n    return rand();\n}\n", "calls rand()"),
    "session/tls.c": ("static _Thread_local int x;\n", "raw atomic or thread-local"),
    "value/atomic.c": ("static _Atomic int x;\n", "raw atomic or thread-local"),
}
KEEPS = "/* time() and <pthread.h> are rt's. */\nint\nf(const char *text)\n{\n    return text == \"rand()\";\n}\n"


def check(script, root):
    run = subprocess.run([sys.executable, script, str(root)], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


def main():
    script, failures = sys.argv[1], 0
    with tempfile.TemporaryDirectory(prefix="weft-rules") as folder:
        root = pathlib.Path(folder)
        for name in [*CASES, "tools/keeps.c"]:
            (root / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "src/tools/keeps.c").write_text(KEEPS)
        status, said = check(script, root)
        if status != 0:
            print("a file that keeps the rules is found fault with:\n" + said)
            failures += 1
        for name, (text, wanted) in CASES.items():
            path = root / "src" / name
            path.write_text(text)
            status, said = check(script, root)
            if status != 1 or f"{name}:" not in said or wanted not in said:
                print(f"{name}: wanted \"{wanted}\", got {status}: {said}")
                failures += 1
            path.unlink()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
