"""catalogue.py -- this machine's package catalogue, as apt keeps it: packages and their relations."""
import glob
import os
import re
import shutil
import subprocess

LISTS = "/var/lib/apt/lists"
HELPER = "/usr/lib/apt/apt-helper"
RELATIONS = ("Pre-Depends", "Depends", "Recommends", "Suggests", "Enhances", "Conflicts", "Breaks",
             "Replaces", "Provides")
RELATION = re.compile(r"\s*([a-z0-9][a-z0-9+.\-]*)(?::[a-z0-9]+)?\s*(?:\(\s*([<>=]+)\s*([^)]*?)\s*\))?")


def list_files():
    """The Packages lists that apt knows, compressed or not."""
    files = []
    if shutil.which("apt-get"):
        done = subprocess.run(["apt-get", "indextargets", "--format", "$(FILENAME)",
                               "Created-By: Packages"], capture_output=True, text=True, check=False)
        files = [line for line in done.stdout.splitlines() if os.path.exists(line)]
    return files or sorted(glob.glob(f"{LISTS}/*_Packages*"))


def read_list(path):
    """The text of a list; apt's own helper knows every compression that apt uses."""
    if not re.search(r"\.(lz4|gz|xz|bz2|zst)$", path):
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    if os.path.exists(HELPER):
        command = [HELPER, "cat-file", path]
    else:
        command = [{"lz4": "lz4", "gz": "gzip", "xz": "xz", "bz2": "bzip2",
                    "zst": "zstd"}[path.rsplit(".", 1)[1]], "-dc", path]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.decode("utf-8", errors="replace")


def relations(kind, text):
    """Rows (kind, group, target, operator, version): the members of a group are alternatives."""
    rows = []
    for group, alternatives in enumerate(text.split(",")):
        for alternative in alternatives.split("|"):
            match = RELATION.match(alternative)
            if match:
                rows.append((kind, group, match.group(1), match.group(2), match.group(3)))
    return rows


def number(text):
    return int(text) if text is not None and text.isdigit() else None


def packages(text):
    """(name, version, section, maintainer, size, installed, summary, relations) for each stanza."""
    for stanza in text.split("\n\n"):
        fields = {}
        for line in stanza.split("\n"):
            if line[:1] not in (" ", "\t") and ":" in line:
                key, value = line.split(":", 1)
                fields[key] = value.strip()
        if "Package" not in fields:
            continue
        rows = []
        for kind in RELATIONS:
            if kind in fields:
                rows += relations(kind, fields[kind])
        yield (fields["Package"], fields.get("Version"), fields.get("Section"),
               fields.get("Maintainer"), number(fields.get("Size")),
               number(fields.get("Installed-Size")), fields.get("Description"), rows)


def load(limit=None):
    """All packages of all lists, in order; with `limit` only the first ones."""
    found = []
    for path in list_files():
        for package in packages(read_list(path)):
            found.append(package)
            if limit is not None and len(found) == limit:
                return found
    return found
