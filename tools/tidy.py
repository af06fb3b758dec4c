#!/usr/bin/env python3
"""tidy.py -- small rules of style that a program can check.

Long lines, long functions, long files, banned calls (naming the replacement), FIXME marks, headers
that nobody includes, and READMEs that name files which do not exist.  What is excused stands in
tools/excuses.txt.  Prints one line a finding; status 1 if there is any.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = 100
FUNCTION_LINES = 70
TEST_FUNCTION_LINES = 120     # Tables of expectations are long.
FILE_LINES = 1200

# Call -> what to use instead.  In src/ everywhere.
BANNED = {
    "malloc": "mem_alloc", "calloc": "mem_alloc_zeroed", "realloc": "mem_realloc",
    "free": "mem_free", "strdup": "mem_strdup", "strndup": "mem_strndup",
    "asprintf": "arena_printf or buf_printf", "sprintf": "snprintf", "vsprintf": "vsnprintf",
    "strcpy": "memcpy with a known size", "strcat": "buf_append_text", "strncpy": "memcpy",
    "strtok": "a scanner of its own", "gets": "rt_lines_next", "alloca": "an arena",
    "setjmp": "Err", "longjmp": "Err", "rand": "rng_next", "srand": "rng_seed",
    "atoi": "the scanner in value/", "atol": "the scanner in value/", "atof": "the scanner in value/",
    "abort": "ASSERT",
}
# Above rt/, besides: the operating system belongs to rt/, number text to value/.
BANNED_ABOVE_RT = {
    "printf": "rt_std_print", "fprintf": "rt_std_print or log_line", "puts": "rt_std_print",
    "putchar": "rt_std_write", "fputs": "rt_std_write", "perror": "log_line", "vprintf": "rt_std_print",
    "fopen": "rt_file_open", "fclose": "rt_file_close", "fread": "rt_file_read",
    "fwrite": "rt_file_write", "fgets": "rt_lines_next", "fflush": "rt_std_write",
    "strtod": "the number scanner in value/", "strtol": "the number scanner in value/",
    "strtoul": "the number scanner in value/", "sscanf": "the number scanner in value/",
    "getenv": "rt_env", "time": "rt_wall_ns", "clock_gettime": "rt_now_ns", "usleep": "rt_sleep_ns",
    "nanosleep": "rt_sleep_ns", "pthread_mutex_lock": "rt_mutex_lock",
    "pthread_create": "rt_thread_start", "isalpha": "a table of its own (locale)",
    "isspace": "a table of its own (locale)", "toupper": "a table of its own (locale)",
    "tolower": "a table of its own (locale)", "strcasecmp": "text_compare_nocase",
    "exit": "a status from main", "qsort": "a sort of its own",
}
FLOAT_FORMAT = re.compile(r'%[-+ #0]*(\*|\d+)?(\.(\*|\d+)?)?[lL]?[fFgGeEaA]')
PRINTING = re.compile(r'\b(\w*printf|err_set(_at)?|log_line|rt_std_print)\s*\(')
DEFINITION = re.compile(r'^(?!(?:typedef|struct|union|enum|static|extern|return|else|do)\b)([A-Za-z_]\w*)\(')
MARK = re.compile(r'\b(' + 'FIX' + 'ME|XX' + 'X|TO' + 'DO)\\b')


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT,
                         capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in out.splitlines() if (ROOT / name).is_file()]


def strip_code(text):
    """The text with comments and literals blanked, lines kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: re.sub(r'[^\n]', " ", m.group(0)), text)


class Findings:
    def __init__(self):
        self.count = 0
        self.excused = set()
        for line in (ROOT / "tools/excuses.txt").read_text().splitlines():
            head = line.split("#", 1)[0].split(":", 1)[0].split()
            if head:
                self.excused.add(tuple(head))

    def add(self, place, text, *excuse):
        if excuse and excuse in self.excused:
            return
        print(f"{place}: {text}")
        self.count += 1


def check_c_file(path, found):
    name = path.relative_to(ROOT).as_posix()
    raw = path.read_text(errors="replace")
    lines = raw.splitlines()
    code = strip_code(raw).splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            found.add(f"{name}:{number}", f"line of {len(line)} columns, {COLUMNS} at most")
        if MARK.search(line):
            found.add(f"{name}:{number}", "an unfinished mark")
    if len(lines) > FILE_LINES and name.startswith(("src/", "include/")):
        found.add(name, f"{len(lines)} lines, {FILE_LINES} at most: split or excuse it",
                  "long-file", name)
    check_functions(name, code, found)
    if name.startswith("src/"):
        check_calls(name, lines, code, found)


def check_functions(name, code, found):
    function, opened = None, 0
    for number, line in enumerate(code, 1):
        if opened == 0:
            match = DEFINITION.match(line)
            if match:
                function = match.group(1)
            if line.startswith("{") and function:
                opened = number
        elif line.startswith("}"):
            most = TEST_FUNCTION_LINES if name.startswith("tests/") else FUNCTION_LINES
            if number - opened - 1 > most:
                found.add(f"{name}:{opened}",
                          f"{function}() has {number - opened - 1} lines, {most} at most",
                          "long-function", name, function)
            function, opened = None, 0


def check_calls(name, lines, code, found):
    folder = name.split("/")[1]
    banned = dict(BANNED)
    if folder not in ("base", "rt"):
        banned.update(BANNED_ABOVE_RT)
    elif folder == "base":
        banned = {k: v for k, v in BANNED.items() if k not in ("malloc", "realloc", "free", "abort", "calloc")}
    elif name.startswith("src/rt/sim/"):
        # The simulated world lives outside the heaps of the processes in it.
        banned = {k: v for k, v in BANNED.items() if k not in ("malloc", "calloc", "realloc", "free", "abort")}
    elif folder == "rt":
        banned.pop("abort")
    calls = re.compile(r'(?<![\w.>])(' + "|".join(banned) + r')\s*\(')
    for number, line in enumerate(code, 1):
        for match in calls.finditer(line):
            call = match.group(1)
            found.add(f"{name}:{number}", f"{call}() is banned here: use {banned[call]}",
                      "call", name, call)
        if folder not in ("base", "rt") and PRINTING.search(line) \
                and FLOAT_FORMAT.search(literal_text(lines[number - 1])):
            found.add(f"{name}:{number}", "printing a real depends on the locale: value/ does it",
                      "call", name, "float-format")


def literal_text(line):
    return " ".join(re.findall(r'"((?:\\.|[^"\\])*)"', line)).replace("%%", "")


def check_headers(found):
    included = set()
    sources = tracked("src", "tests", "include", "fuzz", "bench", "examples")
    for path in sources:
        if path.suffix in (".c", ".h", ".re", ".y", ".inc", ".S"):
            for match in re.finditer(r'#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(errors="replace")):
                included.add(match.group(1))
                included.add((path.parent / match.group(1)).as_posix())
    for path in sources:
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".h" and name.startswith("src/"):
            if name[4:] not in included and path.as_posix() not in included:
                found.add(name, "nobody includes this header", "header", name)


def check_readmes(found):
    """A name in backticks that looks like a file of ours must be one."""
    like_file = re.compile(r'`([\w./-]+\.(?:c|h|py|sh|md|txt|y|re|build|test|inc|S|sql))`')
    like_path = re.compile(r'`((?:src|tests|tools|docs|include|examples|bench|fuzz)/[\w./-]*)`')
    known = {path.name for path in tracked()}
    for path in tracked("*.md"):
        name = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for target in like_file.findall(line) + like_path.findall(line):
                places = (path.parent / target, ROOT / target, ROOT / "src" / target)
                if any(place.exists() for place in places):
                    continue
                if "/" not in target and target in known:
                    continue
                found.add(f"{name}:{number}", f"names {target}, which does not exist",
                          "readme", name, target)


def main():
    found = Findings()
    for path in tracked("*.c", "*.h"):
        check_c_file(path, found)
    check_headers(found)
    check_readmes(found)
    print(f"tidy: {found.count} findings")
    return 1 if found.count else 0


if __name__ == "__main__":
    sys.exit(main())
