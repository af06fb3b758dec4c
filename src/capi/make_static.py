#!/usr/bin/env python3
"""make_static.py NAMES OUTPUT ARCHIVE_OR_OBJECT... -- libsqlite3.a from the libraries of the engine.

All objects become one; what is not exported becomes local, so that a program may have functions of
the same names; and the functions of the C API get the names that programs call.
"""
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    names_path, output, *parts = sys.argv[1:]
    names = pathlib.Path(names_path).read_text(encoding="ascii").split()
    with tempfile.TemporaryDirectory() as folder:
        whole, final = folder + "/whole.o", folder + "/sqlite3.o"
        subprocess.run(["ld", "-r", "-o", whole, "--whole-archive", *parts], check=True)
        renames = pathlib.Path(folder) / "renames"
        renames.write_text("".join(f"weft_{name} {name}\n" for name in names), encoding="ascii")
        subprocess.run(["objcopy", "--localize-hidden", f"--redefine-syms={renames}", whole, final],
                       check=True)
        keep = pathlib.Path(folder) / "keep"
        data = ["sqlite3_version", "sqlite3_temp_directory", "sqlite3_data_directory"]
        keep.write_text("".join(f"{name}\n" for name in names + data), encoding="ascii")
        subprocess.run(["objcopy", f"--keep-global-symbols={keep}", final], check=True)
        if os.path.exists(output):
            os.unlink(output)
        subprocess.run(["ar", "rcsD", output, final], check=True)


main()
