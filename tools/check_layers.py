#!/usr/bin/env python3
"""check_layers.py -- the include edges of src/ against tools/layers.txt.

A folder may include its own files and face headers of the folders that layers.txt allows, nothing
else; system headers are limited the same way.  tests/ and include/ are free to include what they
test.  Prints one line a violation; status 1 if there is any.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class Rules:
    def __init__(self, path):
        self.edges, self.faces, self.private, self.system = {}, set(), set(), {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.split("#", 1)[0].strip()
            if not line:
                continue
            words = line.split()
            if words[0] == "face":
                self.faces.update(words[1:])
            elif words[0] == "private":
                self.private.update(words[1:])
            elif words[0] == "system":
                self.system.setdefault(words[1].rstrip(":"), set()).update(words[2:])
            elif words[0].endswith(":"):
                self.edges[words[0][:-1]] = words[1:]
            else:
                sys.exit(f"{path}:{number}: not understood: {line}")

    def may_include(self, folder, header):
        """None when allowed, else the reason why not."""
        target = header.split("/", 1)[0]
        if target == folder:
            return None
        if target not in self.edges:
            return "is in no known folder" if "/" in header else "needs a path from src/"
        allowed = self.edges[folder]
        if header in allowed:
            return None
        if target not in allowed:
            return f"{folder}/ may not use {target}/"
        if header in self.private or (header.count("/") > 1 and header not in self.faces):
            return f"is private to {target}/"
        return None

    def may_use_system(self, path, folder, header):
        for scope in ("common", folder, path):
            names = self.system.get(scope, ())
            if "*" in names or header in names:
                return True
        return False


def main():
    rules = Rules(ROOT / "tools" / "layers.txt")
    public = {p.name for p in (ROOT / "include").glob("*.h")}
    bad = 0
    seen = 0
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".c", ".h", ".re", ".y") or not path.is_file():
            continue
        name = path.relative_to(ROOT / "src").as_posix()
        folder = name.split("/", 1)[0]
        if folder not in rules.edges:
            print(f"src/{name}: folder is not in tools/layers.txt")
            bad += 1
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            seen += 1
            kind, header = match.groups()
            if header in public:
                why = None if folder in ("session", "capi", "server", "shell", "tools") \
                    else "is the public face, above this folder"
            elif kind == "<":
                why = None if rules.may_use_system(name, folder, header) \
                    else "is a system header that only rt/ may touch"
            elif "/" not in header:
                generated = (path.parent / header).exists() or not (ROOT / "src" / header).exists()
                why = None if generated else "needs a path from src/"
            else:
                why = rules.may_include(folder, header)
            if why:
                print(f"src/{name}:{number}: {header} {why}")
                bad += 1
    print(f"layers: {seen} includes, {bad} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
