#!/usr/bin/env python3
"""amalgamate.py BUILD OUTPUT_FOLDER -- write sqlite3.c and sqlite3.h, the drop-in library
as one pair.

For programs that compile SQLite into themselves.  BUILD is a configured and built Meson folder; it
says which files make the engine.  Each header is put in once, where it is first wanted.  Names that
belong to one file get its number where another file has them too, and every function that is not
part of the C API becomes static, so that nothing else can clash with the program.
"""
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

# The targets of the engine, lowest layer first.
TARGETS = ["base", "rt", "weft_store", "value", "sqlitefile", "sql_grammar", "sql", "exec_loops",
           "exec", "func", "session", "transfer", "capi"]
# The native API has a library of its own; the names of the C API are not changed here.
XXHASH = pathlib.Path("/usr/include/xxhash.h")  # It goes in whole, with its licence.
LEFT_OUT = {"weft_api.c", "weft_array.c", "weft_fetch.c", "capi_rename.h"}
PUBLIC = re.compile(r"sqlite3\w*$")
# What the assembly defines.
FROM_ASSEMBLY = re.compile(r"rt__switch\w*$")

TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<space>\s+)
  | (?P<mark>->|\.\.\.|.)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)

DROPPED = re.compile(r'\s*#\s*(pragma\s+once|line|include\s*"capi_rename\.h")')
DECLARING = re.compile(r"#\s*define\s+(\w+)\([^)]*\)[\s\\]+static\s+(?:inline|ALWAYS_INLINE)")

HEAD = """\
/*
 * sqlite3.c -- the Weft SQL engine with the C API of SQLite, as one file.  Made by
 * tools/amalgamate.py; the sources it is made of are at the head of each part.
 *
 * Compile it with gcc or clang for Linux on x86-64 or arm64; link with -lpthread -lm.
 */
#if !defined(__linux__) || !(defined(__x86_64__) || defined(__aarch64__))
#error "Weft needs Linux on x86-64 or arm64"
#endif
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define WEFT_VERSION "@VERSION@"
#define WEFT_PRIVATE static
#define WEFT_HIDDEN __attribute__((visibility("hidden")))
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#endif
"""


class Tokens:
    """The tokens of one file, and what stands at its file scope."""

    def __init__(self, text):
        # Macros that are whole declarations.
        self.declaring = set(DECLARING.findall(text))
        self.kinds, self.texts = [], []
        for match in TOKEN.finditer(text):
            self.kinds.append(match.lastgroup)
            self.texts.append(match.group())
        self.code = [i for i, kind in enumerate(self.kinds)
                     if kind not in ("comment", "directive", "space")]
        self.in_struct = set()      # tokens inside the braces of a struct or union
        self.types, self.values, self.objects = set(), set(), set()
        self.functions = []         # (index of its first token, name, is static)
        self.globals = []           # objects that are not static: index of the first token, name
        self.macros = set()
        triples = [tuple(self.texts[i] for i in three)
                   for three in zip(self.code, self.code[1:], self.code[2:])]
        tags = [(name, after) for before, name, after in triples if before in ("struct", "union")]
        bodies = {name for name, after in tags if after == "{"}
        # Named here, perhaps to be defined elsewhere.
        self.forward = {name for name, after in tags if after != "{"}
        self.only_named = self.forward - bodies
        self.find_structs()
        self.find_declarations()
        for i, kind in enumerate(self.kinds):
            if kind == "directive":
                macro = re.match(r"\s*#\s*define\s+(\w+)", self.texts[i])
                if macro and not macro.group(1).startswith(("XXH_", "_")):
                    self.macros.add(macro.group(1))

    def find_structs(self):
        """Mark what lies inside structs; collect tags, and the constants of enums."""
        stack, code, texts = [], self.code, self.texts
        for k, i in enumerate(code):
            text = texts[i]
            if text == "{":
                stack.append(self.kind_of_brace(k))
                if stack[-1] == "enum" and "{" not in stack:
                    self.collect_enum(k)
            elif text == "}" and stack:
                stack.pop()
            elif stack and stack[-1] in ("struct", "union"):
                self.in_struct.add(i)

    def kind_of_brace(self, k):
        """What the brace at code[k] opens: struct, union, enum or a plain block."""
        texts, code = self.texts, self.code
        for back in range(1, 4):
            if k < back:
                break
            text = texts[code[k - back]]
            if text in ("struct", "union", "enum"):
                if back == 2:
                    self.types.add(texts[code[k - 1]])
                return text
            if text in (")", ";", "}", "="):
                break
        return "{"

    def collect_enum(self, k):
        texts, code, depth, expect = self.texts, self.code, 0, True
        for i in code[k + 1:]:
            text = texts[i]
            if text == "}":
                return
            if text in "([":
                depth += 1
            elif text in ")]":
                depth -= 1
            elif text == "," and depth == 0:
                expect = True
            elif expect and self.kinds[i] == "name":
                self.values.add(text)
                expect = False

    def find_declarations(self):
        """Cut the file scope into declarations."""
        texts, depth, start, body, skipped = self.texts, 0, None, [], set()
        for k, i in enumerate(self.code):
            text = texts[i]
            if start is None:
                if i in skipped or text == ";":
                    continue
                if text in self.declaring:
                    skipped = self.call_tokens(k)
                    continue
                start, body = i, []
            if text == "{":
                depth += 1
                if depth == 1:
                    body.append(i)
                continue
            if text == "}":
                depth -= 1
                if depth == 0 and self.ends_function(body):
                    self.declare(start, body)
                    start = None
                continue
            if depth == 0:
                if text == ";":
                    self.declare(start, body)
                    start = None
                else:
                    body.append(i)

    def call_tokens(self, k):
        """The tokens of the arguments after the name at code[k]."""
        found, depth = set(), 0
        for i in self.code[k + 1:]:
            found.add(i)
            depth += {"(": 1, ")": -1}.get(self.texts[i], 0)
            if depth == 0:
                break
        return found

    def ends_function(self, body):
        """Whether the braces that follow BODY are those of a function."""
        words = [self.texts[i] for i in body]
        before = words[:words.index("{")]
        return "=" not in before and ")" in before and "typedef" not in before

    def declare(self, start, body):
        words = [self.texts[i] for i in body if self.texts[i] != "__extension__"]
        if not words or words[0] in ("_Static_assert", "STATIC_ASSERT", "__asm__"):
            return
        if words[0] == "typedef":
            self.declare_typedef(words)
            return
        if "{" in words and "=" not in words and ")" not in words and words[-1] == "{":
            return  # a bare struct, union or enum
        name, is_function = self.declared_name(words)
        if name is None:
            return
        static = "static" in words
        if is_function:
            self.functions.append((start, name, static))
        elif not static:
            self.globals.append((start, name))
        else:
            self.objects.add(name)

    def declare_typedef(self, words):
        for k, word in enumerate(words):
            if word == "(" and k + 2 < len(words) and words[k + 1] == "*":
                self.types.add(words[k + 2])
                return
        tail = [w for w in words if re.match(r"[A-Za-z_]\w*$", w)]
        if "(" in words:
            tail = [w for w in words[:words.index("(")] if re.match(r"[A-Za-z_]\w*$", w)]
        if tail:
            self.types.add(tail[-1])

    @staticmethod
    def declared_name(words):
        """The name a declaration gives, and whether it is a function."""
        depth, last = 0, None
        for k, word in enumerate(words):
            if word == "(" and depth == 0:
                if last in ("__attribute__", "_Alignas", "alignas", "PRINTF_LIKE", "typeof"):
                    depth += 1
                    last = None
                    continue
                if k + 1 < len(words) and words[k + 1] == "*":
                    # A pointer to a function: (*name)(...) or (*name[])(...).
                    return words[k + 2], False
                return last, True
            if word == "(":
                depth += 1
            elif word == ")":
                depth -= 1
            elif depth == 0 and word in ("=", "["):
                return last, False
            elif depth == 0 and re.match(r"[A-Za-z_]\w*$", word):
                last = word
        return (last, False) if len(words) > 1 and words[-1] == last else (None, False)

    def own(self):
        """Names that belong to this file alone."""
        statics = {name for _, name, static in self.functions if static}
        return self.types | self.values | self.objects | statics | self.macros


def rename(tokens, renames, types=frozenset()):
    """Give the names of RENAMES their new ones wherever they do not name a field."""
    if not renames:
        return
    texts, kinds = tokens.texts, tokens.kinds
    fields_may = types | tokens.types | tokens.values | tokens.macros
    previous = ["", "", "", ""]
    for i, kind in enumerate(kinds):
        if kind in ("comment", "space"):
            continue
        text = texts[i]
        if kind == "directive":
            if not re.match(r"\s*#\s*include", text):
                texts[i] = re.sub(r"(?<![\w.>\"])[A-Za-z_]\w*",
                                  lambda m: renames.get(m.group(), m.group()), text)
            continue
        if kind == "name" and text in renames and previous[-1] not in (".", "->"):
            is_field = i in tokens.in_struct and text not in fields_may
            is_offset = previous[-1] == "," and previous[-4:-2] == ["offsetof", "("]
            if not is_field and not is_offset:
                texts[i] = renames[text]
        previous = previous[1:] + [text]


def make_private(tokens, others):
    """Static functions, hidden objects."""
    for start, name, static in tokens.functions:
        if static or name in others or PUBLIC.match(name) or FROM_ASSEMBLY.match(name):
            continue
        if tokens.texts[start] == "extern":
            tokens.texts[start] = ""
        tokens.texts[start] = "WEFT_PRIVATE " + tokens.texts[start]
    for start, name in tokens.globals:
        if name not in others and not PUBLIC.match(name):
            tokens.texts[start] = "WEFT_HIDDEN " + tokens.texts[start]


def assembly_text(path):
    """A file of assembly as a statement of C, between its own conditions."""
    lines = []
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="ascii"), flags=re.DOTALL)
    for line in text.splitlines():
        if not line.strip() or ".note.GNU-stack" in line:
            continue
        if line.startswith("#if"):
            lines += [line, "__asm__("]
        elif line.startswith("#endif"):
            lines += ['    ".previous\\n");', line]
        else:
            inner = line.replace(".text", ".pushsection .text") if line.strip() == ".text" else line
            lines.append('    "%s\\n"' % inner.replace("\\", "\\\\").replace('"', '\\"'))
    return "\n".join(lines).replace(".previous", ".popsection") + "\n"


class Amalgamation:
    def __init__(self, build, root):
        self.root, self.build = root, build
        self.files, self.to_undo, self.system = {}, {}, set()
        self.done = set()
        self.out = []

    def sources(self):
        targets = json.loads(subprocess.run(["meson", "introspect", "--targets", str(self.build)],
                                            check=True, capture_output=True, text=True).stdout)
        by_name = {t["name"]: t for t in targets if t["type"] == "static library"}
        found = []
        for name in TARGETS:
            for group in by_name[name]["target_sources"]:
                for path in group.get("sources", []) + group.get("generated_sources", []):
                    path = pathlib.Path(path)
                    if path.suffix in (".c", ".S") and path.name not in LEFT_OUT \
                            and path not in found:
                        found.append(path)
        return found

    def resolve(self, name, by):
        places = [by.parent, self.root / "src", self.root / "include"]
        places += [self.build / "src" / p for p in ("", "capi", "sql/parse")]
        for place in places:
            if (place / name).is_file():
                return (place / name).resolve()
        raise SystemExit(f"amalgamate: {by} includes {name}, which is nowhere")

    def read(self, path):
        if path not in self.files:
            self.files[path] = Tokens(path.read_text(encoding="utf-8"))
            for include in self.includes(path):
                self.read(include[1])
        return self.files[path]

    def includes(self, path):
        for i, text in enumerate(self.files[path].texts):
            if self.files[path].kinds[i] == "directive":
                found = re.match(r'\s*#\s*include\s*"([^"]+)"', text)
                if found and pathlib.Path(found.group(1)).name not in LEFT_OUT:
                    yield i, self.resolve(found.group(1), path)

    def headers_of(self, path):
        """All headers that PATH includes, also through others."""
        todo, met = [path], set()
        while todo:
            for _, header in self.includes(todo.pop()):
                if header not in met:
                    met.add(header)
                    todo.append(header)
        return met

    def opened_types(self, path):
        """Types that a header PATH includes has named, and PATH defines."""
        return set().union(*(self.files[header].types | self.files[header].forward
                             for header in self.headers_of(path)))

    def part_headers(self, units):
        """Where two headers have one name for two things, the second's gets another."""
        first = {}
        for header in [path for path in self.files if path not in units]:
            own = self.files[header].own()
            clashes = {n for n in own if n in first and n not in self.files[header].only_named
                       and header not in self.headers_of(first[n])
                       and first[n] not in self.headers_of(header)}
            named = own - self.files[header].only_named
            first.update({n: header for n in named if n not in first})
            if not clashes:
                continue
            renames = {n: f"{n}_{len(first)}h" for n in clashes}
            for path, tokens in self.files.items():
                if path == header or header in self.headers_of(path) or (
                        path.parent == header.parent and path not in units):
                    rename(tokens, renames, self.files[header].types)

    def put(self, path):
        """Write PATH with its headers, each once."""
        self.done.add(path)
        tokens = self.files[path]
        wanted = dict(self.includes(path))
        name = path.relative_to(self.root) if path.is_relative_to(self.root) else path.name
        self.out.append(f"/* ==== {name} ==== */\n")
        for i, text in enumerate(tokens.texts):
            if i in wanted:
                if wanted[i] not in self.done:
                    self.out.append("\n")
                    self.put(wanted[i])
            elif tokens.kinds[i] == "directive" and "<xxhash.h>" in text:
                self.out.append(XXHASH.read_text(encoding="utf-8"))
            elif tokens.kinds[i] == "directive" and DROPPED.match(text):
                continue
            else:
                self.out.append(text)
        self.out.append("\n")

    def system_names(self):
        """All names in the headers of the system that the engine includes."""
        lines = set()
        for tokens in self.files.values():
            for i, kind in enumerate(tokens.kinds):
                if kind == "directive" and re.match(r"\s*#\s*include\s*<", tokens.texts[i]):
                    lines.add(tokens.texts[i].strip())
        source = "#define _GNU_SOURCE\n#define XXH_INLINE_ALL\n" + "\n".join(sorted(lines)) + "\n"
        text = ""
        for flags in (["-E", "-P"], ["-E", "-dM"]):
            text += subprocess.run(["cc", *flags, "-x", "c", "-"], input=source, check=True,
                                   capture_output=True, text=True).stdout
        return set(re.findall(r"[A-Za-z_]\w*", text))

    def rename_all(self, units):
        """No name twice in the one file."""
        self.system = self.system_names()
        taken = set(self.system)
        for path, tokens in self.files.items():
            if path not in units:
                taken |= tokens.own() | {name for _, name, _ in tokens.functions}
        seen = collections.Counter()
        for path in units:
            seen.update(self.files[path].own())
            taken |= {name for _, name, static in self.files[path].functions if not static}
        self.part_headers(units)
        for number, path in enumerate(units):
            clashes = {n for n in self.files[path].own() if seen[n] > 1 or n in taken}
            clashes -= self.opened_types(path)
            rename(self.files[path], {n: f"{n}_{number}w" for n in clashes})
        self.to_undo = {path: sorted(n for n in self.files[path].macros
                                     if seen[n] == 1 and n not in taken) for path in units}

    def write(self, folder, version):
        sources = self.sources()
        units = [path for path in sources if path.suffix == ".c"]
        units.append(self.root / "src/capi/shim_data.c")
        for path in units:
            self.read(path)
        self.rename_all(units)
        others = self.system.union(*(tokens.macros for tokens in self.files.values()))
        for path, tokens in self.files.items():
            if path.name != "sqlite3.h":
                make_private(tokens, others)
        self.out.append(HEAD.replace("@VERSION@", version))
        for path in sources:
            if path.suffix == ".S":
                self.out.append(f"/* ==== {path.relative_to(self.root)} ==== */\n")
                self.out.append(assembly_text(path))
        for path in units:
            self.put(path)
            self.out += [f"#undef {name}\n" for name in self.to_undo[path]]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sqlite3.c").write_text("".join(self.out), encoding="utf-8")
        shutil.copy(self.root / "include/sqlite3.h", folder / "sqlite3.h")


def main():
    build, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    root = pathlib.Path(__file__).resolve().parent.parent
    version = re.search(r"version: '([^']+)'", (root / "meson.build").read_text()).group(1)
    Amalgamation(build, root).write(folder, version)


main()
