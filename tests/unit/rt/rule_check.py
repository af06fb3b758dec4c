#!/usr/bin/env python3
"""The rule of src/rt: nothing above it touches clock, entropy, threads, files or sockets itself,
keeps writable static data or thread-locals, or uses raw atomics.

usage: rule_check.py SOURCE_ROOT [OBJECT...]

Sources are searched for banned headers and calls; objects (from the build) for writable data
symbols, with objdump.  A line that must be excused says so in EXCUSED below, with its reason.
"""
import os
import re
import subprocess
import sys

ABOVE = ['store', 'value', 'sqlitefile', 'sql', 'exec', 'func', 'session', 'transfer', 'capi', 'server',
         'shell', 'tools']

HEADERS = r'(time|pthread|threads|unistd|fcntl|sched|poll|signal|dirent|semaphore|aio|netdb|sys/[a-z_]+|' \
          r'netinet/[a-z_]+|arpa/[a-z_]+|linux/[a-z_]+|stdatomic|locale)\.h'
# Calls of headers that are allowed for other things; the rest cannot be called without its header.
CALLS = r'(rand|random|srand|arc4random|fopen|fdopen|freopen|fread|fwrite|fclose|fputs|fputc|puts|putchar|printf|' \
        r'fprintf|vfprintf|scanf|fscanf|perror|tmpfile|remove|rename|getenv|setenv|unsetenv|system|popen|atexit|' \
        r'exit|setlocale)'

# file suffix -> pattern that is excused there, and why.
EXCUSED = {
    'store/pool/frames.c': r'raw atomic',  # Publication of plain fields of a frame.
    'store/tree/node.h': r'raw atomic',    # Optimistic looks at fields of pages.
    'sql/plan.h': r'raw atomic',           # A reference count.
}


def code_of(text):
    """Without comments and string contents, keeping line numbers."""
    def blank(match):
        token = match.group(0)
        if token.startswith('/'):
            return re.sub(r'[^\n]', ' ', token)
        return '""' + '\n' * token.count('\n')
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def sources(root):
    for folder in ABOVE:
        for where, _, names in os.walk(os.path.join(root, 'src', folder)):
            for name in sorted(names):
                if name.endswith(('.c', '.h', '.re', '.y')):
                    yield os.path.join(where, name)


def check_source(path):
    with open(path, encoding='utf-8') as file:
        raw = file.read()
    for number, line in enumerate(raw.split('\n'), 1):
        found = re.match(r'\s*#\s*include\s*<' + HEADERS + '>', line)
        if found:
            yield number, 'includes <%s.h>' % found.group(1)
    for number, line in enumerate(code_of(raw).split('\n'), 1):
        if line.lstrip().startswith('#'):
            continue
        found = re.search(r'(?<![\w.>])' + CALLS + r'\s*\(', line)
        if found and not re.match(r'\w', line):  # A definition starts at the margin.
            yield number, 'calls %s()' % found.group(1)
        if re.search(r'\b_Atomic\b|\b__atomic_\w+|\b_Thread_local\b|\b__thread\b', line):
            yield number, 'raw atomic or thread-local'


def check_object(path):
    """Symbols in writable sections; what lies in .data.rel.ro is constant after loading."""
    text = subprocess.run(['objdump', '-t', path], capture_output=True, text=True,
                          check=False).stdout
    for line in text.split('\n'):
        found = re.match(r'[0-9a-f]+ .{7} (\.data|\.bss|\.tdata|\.tbss|\*COM\*)(\.\S*)?\t'
                         r'[0-9a-f]+\s+(?:\.hidden )?(\S+)$', line)
        if not found or (found.group(2) or '').startswith('.rel.ro'):
            continue
        name = found.group(3)
        if not name.startswith(('__', '.', 'reached_once_', 'DW.ref')):
            yield 0, 'writable data %s in %s' % (name, found.group(1))


def main():
    root, objects = sys.argv[1], sys.argv[2:]
    failures = 0
    for check, paths in ((check_source, sources(root)), (check_object, objects)):
        for path in paths:
            for number, what in check(path):
                shown = os.path.relpath(path, root)
                if any(shown.endswith(end) and re.search(pattern, what)
                       for end, pattern in EXCUSED.items()):
                    continue
                print('%s:%d: %s' % (shown, number, what))
                failures += 1
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
