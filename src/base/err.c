/*
 * err.c -- the one table that joins Err, its name, its text and its SQLITE_* code.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/asserts.h"
#include "base/mem.h"

typedef struct ErrRow {
    const char *name;
    int sqlite; /* Extended code; low byte is the primary one. */
    const char *text;
} ErrRow;

#define EXT(primary, n) ((primary) | ((n) << 8))

static const ErrRow err_rows[ERR_COUNT_] = {
    [OK] = {"OK", 0, "not an error"},
    [ERR_SQL] = {"ERR_SQL", 1, "SQL logic error"},
    [ERR_INTERNAL] = {"ERR_INTERNAL", 2, "internal error"},
    [ERR_NO_COLLATION] = {"ERR_NO_COLLATION", EXT(1, 1), "no such collation sequence"},
    [ERR_UNSUPPORTED] = {"ERR_UNSUPPORTED", 1, "not supported"},
    [ERR_NOMEM] = {"ERR_NOMEM", 7, "out of memory"},
    [ERR_TOOBIG] = {"ERR_TOOBIG", 18, "string or blob too big"},
    [ERR_LIMIT] = {"ERR_LIMIT", 1, "limit exceeded"},
    [ERR_BUSY] = {"ERR_BUSY", 5, "database is locked"},
    [ERR_BUSY_SNAPSHOT] = {"ERR_BUSY_SNAPSHOT", EXT(5, 2), "database is locked"},
    [ERR_BUSY_DEADLOCK] = {"ERR_BUSY_DEADLOCK", 5, "deadlock detected"},
    [ERR_LOCKED] = {"ERR_LOCKED", 6, "database table is locked"},
    [ERR_SERIALIZE] = {"ERR_SERIALIZE", EXT(5, 2),
                       "could not serialize access due to read/write dependencies"},
    [ERR_INTERRUPT] = {"ERR_INTERRUPT", 9, "interrupted"},
    [ERR_TIMEOUT] = {"ERR_TIMEOUT", EXT(5, 3), "timed out"},
    [ERR_IO] = {"ERR_IO", 10, "disk I/O error"},
    [ERR_IO_READ] = {"ERR_IO_READ", EXT(10, 1), "disk I/O error"},
    [ERR_IO_WRITE] = {"ERR_IO_WRITE", EXT(10, 3), "disk I/O error"},
    [ERR_IO_SYNC] = {"ERR_IO_SYNC", EXT(10, 4), "disk I/O error"},
    [ERR_IO_SHORT_READ] = {"ERR_IO_SHORT_READ", EXT(10, 2), "disk I/O error"},
    [ERR_FULL] = {"ERR_FULL", 13, "database or disk is full"},
    [ERR_CANTOPEN] = {"ERR_CANTOPEN", 14, "unable to open database file"},
    [ERR_NOTADB] = {"ERR_NOTADB", 26, "file is not a database"},
    [ERR_VERSION] = {"ERR_VERSION", 26, "file is of another format version"},
    [ERR_CORRUPT] = {"ERR_CORRUPT", 11, "database disk image is malformed"},
    [ERR_READONLY] = {"ERR_READONLY", 8, "attempt to write a readonly database"},
    [ERR_FOREIGN] = {"ERR_FOREIGN", 21, "handle was inherited through fork"},
    [ERR_OWNED] = {"ERR_OWNED", 5, "database is owned by another process"},
    [ERR_CLOSED] = {"ERR_CLOSED", 21, "closed"},
    [ERR_EXISTS] = {"ERR_EXISTS", 14, "already exists"},
    [ERR_NOTFOUND] = {"ERR_NOTFOUND", 14, "no such file"},
    [ERR_PERM] = {"ERR_PERM", 3, "access permission denied"},
    [ERR_AUTH] = {"ERR_AUTH", 23, "authorization denied"},
    [ERR_SCHEMA] = {"ERR_SCHEMA", 17, "database schema has changed"},
    [ERR_MISMATCH] = {"ERR_MISMATCH", 20, "datatype mismatch"},
    [ERR_MISUSE] = {"ERR_MISUSE", 21, "bad parameter or other API misuse"},
    [ERR_RANGE] = {"ERR_RANGE", 25, "column index out of range"},
    [ERR_ABORT] = {"ERR_ABORT", 4, "query aborted"},
    [ERR_ABORT_ROLLBACK] = {"ERR_ABORT_ROLLBACK", EXT(4, 2), "abort due to ROLLBACK"},
    [ERR_CONSTRAINT] = {"ERR_CONSTRAINT", 19, "constraint failed"},
    [ERR_CONSTRAINT_CHECK] = {"ERR_CONSTRAINT_CHECK", EXT(19, 1), "constraint failed"},
    [ERR_CONSTRAINT_FOREIGNKEY] = {"ERR_CONSTRAINT_FOREIGNKEY", EXT(19, 3),
                                   "FOREIGN KEY constraint failed"},
    [ERR_CONSTRAINT_NOTNULL] = {"ERR_CONSTRAINT_NOTNULL", EXT(19, 5), "constraint failed"},
    [ERR_CONSTRAINT_PRIMARYKEY] = {"ERR_CONSTRAINT_PRIMARYKEY", EXT(19, 6), "constraint failed"},
    [ERR_CONSTRAINT_ROWID] = {"ERR_CONSTRAINT_ROWID", EXT(19, 10), "constraint failed"},
    [ERR_CONSTRAINT_TRIGGER] = {"ERR_CONSTRAINT_TRIGGER", EXT(19, 7), "constraint failed"},
    [ERR_CONSTRAINT_UNIQUE] = {"ERR_CONSTRAINT_UNIQUE", EXT(19, 8), "constraint failed"},
    [ERR_CONSTRAINT_DATATYPE] = {"ERR_CONSTRAINT_DATATYPE", EXT(19, 12), "constraint failed"},
    [ERR_CONSTRAINT_FUNCTION] = {"ERR_CONSTRAINT_FUNCTION", EXT(19, 4), "constraint failed"},
    [ERR_CONSTRAINT_PINNED] = {"ERR_CONSTRAINT_PINNED", EXT(19, 11), "constraint failed"},
    [ERR_HOST] = {"ERR_HOST", 1, "SQL logic error"},
};

const char *
err_text(Err err)
{
    ASSERT((unsigned)err < ERR_COUNT_);
    return err_rows[err].text;
}

const char *
err_name(Err err)
{
    ASSERT((unsigned)err < ERR_COUNT_);
    return err_rows[err].name;
}

int
err_sqlite(Err err)
{
    ASSERT((unsigned)err < ERR_COUNT_);
    return err_rows[err].sqlite;
}

typedef struct CodeName {
    int code;
    const char *name;
} CodeName;

static const CodeName code_names[] = {
    {0, "SQLITE_OK"},
    {1, "SQLITE_ERROR"},
    {EXT(1, 1), "SQLITE_ERROR_MISSING_COLLSEQ"},
    {2, "SQLITE_INTERNAL"},
    {3, "SQLITE_PERM"},
    {4, "SQLITE_ABORT"},
    {5, "SQLITE_BUSY"},
    {6, "SQLITE_LOCKED"},
    {7, "SQLITE_NOMEM"},
    {8, "SQLITE_READONLY"},
    {9, "SQLITE_INTERRUPT"},
    {10, "SQLITE_IOERR"},
    {11, "SQLITE_CORRUPT"},
    {12, "SQLITE_NOTFOUND"},
    {13, "SQLITE_FULL"},
    {14, "SQLITE_CANTOPEN"},
    {15, "SQLITE_PROTOCOL"},
    {17, "SQLITE_SCHEMA"},
    {18, "SQLITE_TOOBIG"},
    {19, "SQLITE_CONSTRAINT"},
    {20, "SQLITE_MISMATCH"},
    {21, "SQLITE_MISUSE"},
    {22, "SQLITE_NOLFS"},
    {23, "SQLITE_AUTH"},
    {25, "SQLITE_RANGE"},
    {26, "SQLITE_NOTADB"},
    {EXT(4, 2), "SQLITE_ABORT_ROLLBACK"},
    {EXT(5, 2), "SQLITE_BUSY_SNAPSHOT"},
    {EXT(5, 3), "SQLITE_BUSY_TIMEOUT"},
    {EXT(10, 1), "SQLITE_IOERR_READ"},
    {EXT(10, 2), "SQLITE_IOERR_SHORT_READ"},
    {EXT(10, 3), "SQLITE_IOERR_WRITE"},
    {EXT(10, 4), "SQLITE_IOERR_FSYNC"},
    {EXT(19, 1), "SQLITE_CONSTRAINT_CHECK"},
    {EXT(19, 3), "SQLITE_CONSTRAINT_FOREIGNKEY"},
    {EXT(19, 4), "SQLITE_CONSTRAINT_FUNCTION"},
    {EXT(19, 5), "SQLITE_CONSTRAINT_NOTNULL"},
    {EXT(19, 6), "SQLITE_CONSTRAINT_PRIMARYKEY"},
    {EXT(19, 7), "SQLITE_CONSTRAINT_TRIGGER"},
    {EXT(19, 8), "SQLITE_CONSTRAINT_UNIQUE"},
    {EXT(19, 10), "SQLITE_CONSTRAINT_ROWID"},
    {EXT(19, 12), "SQLITE_CONSTRAINT_DATATYPE"},
};

const char *
err_sqlite_name(int extended_code)
{
    const char *primary = "SQLITE_ERROR";
    for (size_t i = 0; i < COUNT_OF(code_names); i++) {
        if (code_names[i].code == extended_code) return code_names[i].name;
        if (code_names[i].code == (extended_code & 0xff)) primary = code_names[i].name;
    }
    return primary;
}

Err
err_vset_at(ErrMsg *msg, Err err, i32 sql_offset, const char *format, va_list args)
{
    ASSERT(err != OK);
    if (msg == NULL) return err;
    int length = -1;
    if (format != NULL) {
        va_list again;
        va_copy(again, args);
        length = vsnprintf(NULL, 0, format, again);
        va_end(again);
    }
    /* The new text may quote the old one, so the old one goes last. */
    char *text = length < 0 ? NULL : mem_alloc((size_t)length + 1);
    if (text != NULL) vsnprintf(text, (size_t)length + 1, format, args);
    mem_free(msg->text);
    *msg = (ErrMsg){.err = err, .sql_offset = sql_offset, .text = text};
    return err;
}

Err
err_set(ErrMsg *msg, Err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err_vset_at(msg, err, -1, format, args);
    va_end(args);
    return err;
}

Err
err_set_at(ErrMsg *msg, Err err, i32 sql_offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err_vset_at(msg, err, sql_offset, format, args);
    va_end(args);
    return err;
}

void
err__free(ErrMsg *msg)
{
    mem_free(msg->text);
    *msg = (ErrMsg){.sql_offset = -1};
}

void
err_move(ErrMsg *to, ErrMsg *from)
{
    if (to == from) return;
    if (to != NULL) {
        mem_free(to->text);
        *to = *from;
        from->text = NULL;
    }
    err_clear(from);
}

const char *
err_message(const ErrMsg *msg)
{
    return msg->text != NULL ? msg->text : err_text(msg->err);
}
