/*
 * err.h -- the engine's error codes, and an error with its message.
 *
 * A function that can fail returns Err and is marked MUST_CHECK.  "Not found" is a result, not an
 * error.  The code says what kind of failure; a text for people is written into the caller's
 * ErrMsg where one is passed.  err_sqlite() is the one table that turns Err into SQLITE_* codes.
 */
#pragma once

#include <stdarg.h>

#include "base/types.h"

typedef enum Err {
    OK = 0,
    ERR_SQL,          /* A mistake in the statement; the message says which. */
    ERR_INTERNAL,     /* Our own mistake, caught. */
    ERR_UNSUPPORTED,  /* Understood, refused by name. */
    ERR_NO_COLLATION, /* A collating sequence that nobody registered. */
    ERR_NOMEM,
    ERR_TOOBIG,        /* String, blob or row over its limit. */
    ERR_LIMIT,         /* Another limit: columns, depth, connections... */
    ERR_BUSY,          /* A wait ended by its time limit. */
    ERR_BUSY_SNAPSHOT, /* Stale snapshot: the transaction must start again. */
    ERR_BUSY_DEADLOCK, /* This wait would have closed a cycle. */
    ERR_LOCKED,        /* Conflict inside one connection (open statement and DROP). */
    ERR_SERIALIZE,     /* SERIALIZABLE: dangerous structure. */
    ERR_INTERRUPT,     /* Cancelled by the user. */
    ERR_TIMEOUT,       /* A deadline of rt passed. */
    ERR_IO,            /* Some I/O failed; the four below say more. */
    ERR_IO_READ,
    ERR_IO_WRITE,
    ERR_IO_SYNC,
    ERR_IO_SHORT_READ,
    ERR_FULL, /* Disk or buffer full. */
    ERR_CANTOPEN,
    ERR_NOTADB,  /* A foreign file. */
    ERR_VERSION, /* Ours, but of a format we do not know. */
    ERR_CORRUPT, /* Damage; the message names file and place. */
    ERR_READONLY,
    ERR_FOREIGN, /* Handle inherited through fork(). */
    ERR_OWNED,   /* Another process owns the file. */
    ERR_CLOSED,  /* Peer closed, or the object is shutting down. */
    ERR_EXISTS,
    ERR_NOTFOUND, /* Only for file-system level calls. */
    ERR_PERM,
    ERR_AUTH,     /* Authorizer said no. */
    ERR_SCHEMA,   /* Schema changed: prepare again. */
    ERR_MISMATCH, /* datatype mismatch */
    ERR_MISUSE,
    ERR_RANGE,
    ERR_ABORT,
    ERR_ABORT_ROLLBACK,
    ERR_CONSTRAINT, /* Generic; the rest say which kind. */
    ERR_CONSTRAINT_CHECK,
    ERR_CONSTRAINT_FOREIGNKEY,
    ERR_CONSTRAINT_NOTNULL,
    ERR_CONSTRAINT_PRIMARYKEY,
    ERR_CONSTRAINT_ROWID,
    ERR_CONSTRAINT_TRIGGER,
    ERR_CONSTRAINT_UNIQUE,
    ERR_CONSTRAINT_DATATYPE,
    ERR_CONSTRAINT_FUNCTION,
    ERR_CONSTRAINT_PINNED, /* A trigger writes to the table whose row is just being replaced. */
    ERR_HOST,              /* A host function failed with a code of its own (ErrMsg.host_code). */
    ERR_COUNT_
} Err;

/*
 * An error with its text.  Zero-initialised means "no error".  Owns `text`; err_clear() frees it.
 * Not thread-safe: it belongs to one statement, connection or request.
 */
typedef struct ErrMsg {
    Err err;
    i32 sql_offset; /* Byte offset in the SQL text, -1 if none. */
    i32 host_code;  /* For ERR_HOST: the extended SQLITE_* code. */
    char *text;     /* NUL-terminated, owned; NULL: use err_text(err). */
} ErrMsg;

/* Set code and message, replacing what was there; returns `err`, so `return err_set(...)` works.
   `msg` may be NULL.  If memory is short, or `format` is NULL, the code stands and the text falls
   back to err_text(). */
Err err_set(ErrMsg *msg, Err err, const char *format, ...) PRINTF_LIKE(3, 4);
/* The same with a byte offset into the SQL text. */
Err err_set_at(ErrMsg *msg, Err err, i32 sql_offset, const char *format, ...) PRINTF_LIKE(4, 5);
Err err_vset_at(ErrMsg *msg, Err err, i32 sql_offset, const char *format, va_list args)
    PRINTF_LIKE(4, 0);
void err__free(ErrMsg *msg);
static inline void
err_clear(ErrMsg *msg)
{
    if (msg == NULL || (msg->text == NULL && msg->err == OK)) return;
    err__free(msg);
}
/* Move an error from one place to another; `from` is left clear. */
void err_move(ErrMsg *to, ErrMsg *from);
/* The message to show: msg->text, or the standard text of its code.  Never NULL. */
const char *err_message(const ErrMsg *msg);

/* Standard English text of a code, SQLite's words where SQLite has the code. */
const char *err_text(Err err);
/* Name for logs: "ERR_BUSY". */
const char *err_name(Err err);
/* The extended SQLITE_* code; its low byte is the primary code. */
int err_sqlite(Err err);
/* The code's name as clients know it: "SQLITE_BUSY_SNAPSHOT". */
const char *err_sqlite_name(int extended_code);
