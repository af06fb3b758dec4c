/*
 * link.h -- the database behind the shell: a file opened here, or a weftd at the other end of a
 * socket.  The shell does not know which.
 */
#pragma once

#include "base/base.h"
#include "weft.h"

typedef struct LinkValue {
    int type; /* WEFT_INTEGER ... WEFT_NULL */
    i64 i;
    f64 r;
    Slice text; /* TEXT, BLOB; borrowed unless its holder says otherwise. */
} LinkValue;

typedef struct Link Link;

/* Receives a result.  Return false to stop the statement. */
typedef bool (*LinkColumns)(void *arg, u32 count, const char *const *names);
typedef bool (*LinkRow)(void *arg, u32 count, const LinkValue *values);
typedef void (*LinkDone)(void *arg);

typedef struct LinkSink {
    void *arg;
    LinkColumns columns; /* Once per statement with result columns. */
    LinkRow row;
    LinkDone done; /* After each statement that succeeded or failed, if columns was called. */
} LinkSink;

/* Value of a named parameter; false: none. */
typedef bool (*LinkParam)(void *arg, const char *name, LinkValue *value_out);

typedef struct LinkError {
    int code;
    i64 offset;         /* Of the mistake in the SQL given; -1: unknown. */
    i64 statement;      /* Where the failed statement begins in it. */
    bool while_running; /* Else while preparing. */
    char *text;         /* Owned: link_error_clear(). */
} LinkError;
void link_error_clear(LinkError *error);

/* NULL path: in memory.  On failure NULL and *error_out. */
Link *link_open_file(const char *path, bool read_only, LinkError *error_out);
Link *link_open_server(const char *address, const char *token, LinkError *error_out);
void link_close(Link *link); /* NULL allowed. */
bool link_is_remote(const Link *link);
/* Safe in a signal handler. */
void link_interrupt(Link *link);

/* Run the statements of `sql` in order; stops at the first error.  `sink` members may be NULL. */
bool link_run(Link *link, Slice sql, const LinkSink *sink, LinkParam param, void *param_arg,
              LinkError *error_out);
i64 link_changes(Link *link); /* By the last statement. */
/* Numbers of the engine; false: not known (through a server). */
bool link_stats(Link *link, weft_statistics *stats_out);

/* Copy a database into a new file.  Only of a file that is open here. */
bool link_backup(Link *link, const char *name, const char *path, LinkError *error_out);
/* A limit of the connection by its number in weft.h; negative `to`: only look.  False: not known
   (through a server, or no such limit). */
bool link_limit(Link *link, int limit, int to, int *value_out);

/* Run one statement for many rows of values, as one transaction where that is possible. */
typedef struct LinkLoad LinkLoad;
LinkLoad *link_load_begin(Link *link, const char *sql, u32 columns, LinkError *error_out);
bool link_load_row(LinkLoad *load, const LinkValue *values, LinkError *error_out);
/* Frees the load in any case; with `keep` false everything is undone. */
bool link_load_end(LinkLoad *load, bool keep, LinkError *error_out);
