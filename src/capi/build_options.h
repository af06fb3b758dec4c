/*
 * build_options.h -- those of SQLite's compile-time macros that programs set when they compile the
 * library into themselves, and that mean something here.  The rest have no effect
 * (docs/compatibility.md).
 */
#pragma once

/* 0, 1 or 2: what sqlite3_threadsafe() says, and whether a connection has a mutex for the program's
   own sections.  The library itself is safe for threads whatever is said here. */
#ifndef SQLITE_THREADSAFE
#define SQLITE_THREADSAFE 1
#endif

/* Whether a name that begins with "file:" is a URI also without SQLITE_OPEN_URI, as in Debian's
   library. */
#ifndef SQLITE_USE_URI
#define SQLITE_USE_URI 1
#endif

#ifndef SQLITE_DEFAULT_FOREIGN_KEYS
#define SQLITE_DEFAULT_FOREIGN_KEYS 0
#endif

/* Double-quoted strings: 1 in data statements, 2 in definitions, 3 in both. */
#ifndef SQLITE_DQS
#define SQLITE_DQS 3
#endif
