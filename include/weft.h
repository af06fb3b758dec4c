/*
 * weft.h -- the native API of the Weft SQL engine.
 *
 * A weft_db is one connection to a database file (or to an in-memory database); connections of one
 * process to one file share everything underneath and may write at the same time.  A weft_stmt is
 * a prepared statement of one connection.
 *
 *     weft_db *db;
 *     weft_stmt *stmt;
 *     if (weft_open("app.weft", NULL, &db) != WEFT_OK) ...;
 *     weft_prepare(db, "SELECT name FROM t WHERE id = ?", -1, &stmt, NULL);
 *     weft_bind_int64(stmt, 1, 42);
 *     while (weft_step(stmt) == WEFT_ROW) puts(weft_column_text(stmt, 0));
 *     weft_finalize(stmt);
 *     weft_close(db);
 *
 * Results are SQLite's numbers: WEFT_OK 0, WEFT_ROW 100, WEFT_DONE 101, everything else an
 * (extended) SQLITE_* error code; weft_errmsg() has the text.
 *
 * Threads: a connection and its statements may be used by any thread, one call at a time (calls
 * wait for each other).  weft_interrupt() may be called at any time, also in a signal handler.
 * After fork() the child's handles answer every call with an error and touch nothing.
 *
 * Transactions: outside BEGIN each statement is a transaction of its own.  Default isolation is
 * SNAPSHOT; rows that another open transaction has written are waited for, at most
 * weft_options.busy_timeout_ms.  A transaction that loses a write conflict gets WEFT_BUSY_SNAPSHOT
 * and must be rolled back and tried again; statements in autocommit never need that.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_API __attribute__((visibility("default")))

typedef struct weft_db weft_db;
typedef struct weft_stmt weft_stmt;

enum {
    WEFT_OK = 0,
    WEFT_ERROR = 1,
    WEFT_ABORT = 4,
    WEFT_BUSY = 5,
    WEFT_LOCKED = 6,
    WEFT_NOMEM = 7,
    WEFT_READONLY = 8,
    WEFT_INTERRUPT = 9,
    WEFT_IOERR = 10,
    WEFT_CORRUPT = 11,
    WEFT_FULL = 13,
    WEFT_CANTOPEN = 14,
    WEFT_SCHEMA = 17,
    WEFT_TOOBIG = 18,
    WEFT_CONSTRAINT = 19,
    WEFT_MISMATCH = 20,
    WEFT_MISUSE = 21,
    WEFT_RANGE = 25,
    WEFT_NOTADB = 26,
    WEFT_ROW = 100,
    WEFT_DONE = 101,
    WEFT_BUSY_SNAPSHOT = 5 | (2 << 8)
};

/* Column and value types: SQLite's numbers. */
enum { WEFT_INTEGER = 1, WEFT_FLOAT = 2, WEFT_TEXT = 3, WEFT_BLOB = 4, WEFT_NULL = 5 };

/* How many writers: WEFT_MULTI is the default of this API. */
enum { WEFT_MULTI = 0, WEFT_SINGLE = 1 };

/* When a commit is acknowledged. */
enum { WEFT_SYNC_FULL = 0, WEFT_SYNC_NORMAL = 1, WEFT_SYNC_OFF = 2 };

/* Zero-initialised means the defaults. */
typedef struct weft_options {
    bool read_only;
    bool no_create;          /* A missing file is an error. */
    int writers;             /* WEFT_MULTI */
    int sync;                /* WEFT_SYNC_FULL */
    int64_t busy_timeout_ms; /* Longest wait for a row; 0: 5,000; negative: do not wait. */
    uint64_t pool_bytes;     /* 0: default. */
    uint32_t page_bytes;     /* For a new file; 0: 16384. */
} weft_options;

/*
 * Open a database.  `path` NULL, "" or ":memory:": a private one in memory.
 * *db_out is set even on most errors, so that weft_errmsg() can say what happened; close it in any
 * case.  It is NULL only when memory is short.
 */
WEFT_API int weft_open(const char *path, const weft_options *options, weft_db **db_out);
/* Finalizes its statements and rolls back an open transaction.  NULL is allowed. */
WEFT_API int weft_close(weft_db *db);

WEFT_API const char *weft_errmsg(weft_db *db); /* Valid until the next call on the connection. */
WEFT_API int weft_errcode(weft_db *db);        /* Extended code of the last failed call. */
WEFT_API const char *weft_errname(int code);   /* "SQLITE_BUSY_SNAPSHOT" */
/* Byte offset in the SQL text that the last error speaks of, or -1. */
WEFT_API int weft_error_offset(weft_db *db);
/*
 * The last error as an object of its own, which outlives later calls and the connection and may
 * go to another thread.  NULL: there is none, or memory is short.  Freed with weft_error_free().
 */
typedef struct weft_error {
    int code;            /* Extended. */
    int offset;          /* In the SQL text, in bytes; -1: none. */
    bool retry;          /* Roll back and run the transaction again: it may succeed. */
    const char *name;    /* "SQLITE_BUSY_SNAPSHOT" */
    const char *message; /* Never NULL. */
} weft_error;
WEFT_API weft_error *weft_error_take(weft_db *db);
WEFT_API void weft_error_free(weft_error *error); /* NULL is allowed. */
WEFT_API const char *weft_version(void);

/* Stop what the connection is running; safe in signal handlers and from other threads.  The
   running call returns WEFT_INTERRUPT.  Without a running call it does nothing. */
WEFT_API void weft_interrupt(weft_db *db);
WEFT_API void weft_busy_timeout(weft_db *db, int64_t milliseconds);

/* Limits of a connection, which may be lowered from what they are at first; `to` negative only
   looks.  Returns the value before, -1 if there is no such limit. */
enum {
    WEFT_LIMIT_LENGTH = 0, /* Bytes of a text, blob or row. */
    WEFT_LIMIT_SQL_LENGTH,
    WEFT_LIMIT_COLUMN,
    WEFT_LIMIT_EXPR_DEPTH,
    WEFT_LIMIT_COMPOUND_SELECT,
    WEFT_LIMIT_PROGRAM, /* Not used. */
    WEFT_LIMIT_FUNCTION_ARG,
    WEFT_LIMIT_ATTACHED,
    WEFT_LIMIT_LIKE_PATTERN_LENGTH,
    WEFT_LIMIT_PARAMETER_NUMBER,
    WEFT_LIMIT_TRIGGER_DEPTH
};
WEFT_API int weft_limit(weft_db *db, int limit, int to);

/*
 * Prepare the first statement of `sql` (`bytes` negative: up to the NUL).  *tail_out (may be NULL)
 * is where the next one begins.  Blank text and comments give WEFT_OK and a NULL statement.
 */
WEFT_API int weft_prepare(weft_db *db, const char *sql, ptrdiff_t bytes, weft_stmt **stmt_out,
                          const char **tail_out);
/* Returns the error of the last run, if it failed.  NULL is allowed. */
WEFT_API int weft_finalize(weft_stmt *stmt);
/* Ready to run again; bound values stay. */
WEFT_API int weft_reset(weft_stmt *stmt);
/* WEFT_ROW, WEFT_DONE or an error.  A statement that writes does all of its work in the first
   step. */
WEFT_API int weft_step(weft_stmt *stmt);
/* Run every statement of `sql` in order, discarding rows; stops at the first error. */
WEFT_API int weft_exec(weft_db *db, const char *sql);

/* Parameters count from 1.  Bytes are copied. */
WEFT_API int weft_bind_null(weft_stmt *stmt, int index);
WEFT_API int weft_bind_int64(weft_stmt *stmt, int index, int64_t value);
WEFT_API int weft_bind_double(weft_stmt *stmt, int index, double value);
WEFT_API int weft_bind_text(weft_stmt *stmt, int index, const char *text, ptrdiff_t bytes);
WEFT_API int weft_bind_blob(weft_stmt *stmt, int index, const void *bytes, size_t count);
WEFT_API int weft_bind_count(weft_stmt *stmt);
WEFT_API int weft_bind_index(weft_stmt *stmt, const char *name); /* With its prefix; 0: none. */
WEFT_API const char *weft_bind_name(weft_stmt *stmt, int index); /* NULL for `?`. */
WEFT_API int weft_clear_bindings(weft_stmt *stmt);

/* Columns count from 0.  Pointers stay valid until the next step, reset or finalize. */
WEFT_API int weft_column_count(weft_stmt *stmt);
WEFT_API const char *weft_column_name(weft_stmt *stmt, int column);
WEFT_API const char *weft_column_decltype(weft_stmt *stmt, int column); /* NULL: an expression. */
WEFT_API int weft_column_type(weft_stmt *stmt, int column);
WEFT_API int64_t weft_column_int64(weft_stmt *stmt, int column);
WEFT_API double weft_column_double(weft_stmt *stmt, int column);
WEFT_API const char *weft_column_text(weft_stmt *stmt, int column); /* NUL-terminated; NULL: NULL */
WEFT_API const void *weft_column_blob(weft_stmt *stmt, int column);
WEFT_API size_t weft_column_bytes(weft_stmt *stmt, int column);

/*
 * Whole columns
 *
 * weft_fetch() takes many rows of a query at once and hands them over as columns in memory, in the
 * form of the Arrow C data interface, which pyarrow, polars, DuckDB, pandas and others take without
 * a copy.  The batch is a struct array with a child for each column of the result.
 *
 *     struct ArrowArray batch;
 *     struct ArrowSchema schema;
 *     while (weft_fetch(stmt, 4096, &batch) == WEFT_ROW) {
 *         const int64_t *ids = batch.children[0]->buffers[1];
 *         for (int64_t i = 0; i < batch.length; i++) ...;
 *         batch.release(&batch);
 *     }
 *
 * Types.  A column has one Arrow type for all batches of a run: int64 ("l"), float64 ("g"), large
 * utf8 ("U") or large binary ("Z").  It is the one that weft_fetch_type() chose; else that of the
 * declared type, if it has INTEGER, REAL, TEXT or BLOB affinity; else (expressions, NUMERIC) that
 * of the values in the first batch: integers, numbers, or the first value's; text if all are NULL.
 * A value of another type is converted if nothing is lost by it (1 and 1.0, a number or text as
 * bytes, a number as text), otherwise the fetch fails with WEFT_MISMATCH and says which value it
 * was.  Text is handed over as it is stored.
 */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE           2
#define ARROW_FLAG_MAP_KEYS_SORTED    4
struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};
struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif

/*
 * The next rows, at most `rows_max` (above 0), and none behind a row with which the batch has 1 MiB
 * of text and blobs.  WEFT_ROW: *array_out holds at least one, and the caller ends it with
 * array_out->release(array_out), before or after the statement is finalized.
 * WEFT_DONE: there are no more; *array_out is empty (release NULL).  After an error *array_out is
 * empty too, the rows that were gathered are lost, and the statement is reset.
 */
WEFT_API int weft_fetch(weft_stmt *stmt, int64_t rows_max, struct ArrowArray *array_out);
/* Names and types of the columns as the batches of this run have them; what is still undecided
   counts as text.  The caller ends it with schema_out->release(schema_out). */
WEFT_API int weft_fetch_schema(weft_stmt *stmt, struct ArrowSchema *schema_out);
/* Choose the type of a column: WEFT_INTEGER, WEFT_FLOAT, WEFT_TEXT, WEFT_BLOB, or WEFT_NULL for
   none of them again.  From the next run on. */
WEFT_API int weft_fetch_type(weft_stmt *stmt, int column, int type);
/* The whole result as a stream of such batches.  The first is fetched at once.  The statement must
   outlive the stream and is reset by its release. */
WEFT_API int
weft_fetch_stream(weft_stmt *stmt, int64_t rows_max, struct ArrowArrayStream *stream_out);

/*
 * Run the statement once for each row of a struct array: child k is parameter k + 1, and there are
 * as many as parameters.  All rows or none: inside BEGIN the earlier ones are undone when one
 * fails, outside they are one transaction.  *rows_out (may be NULL): how many rows were done, also
 * on an error: the place of the one that failed.  Rows of a result are discarded.
 * Types: null, bool, all integers, float, double, (large) utf8, (large) and fixed-size binary;
 * others, and dictionaries, are refused with WEFT_MISMATCH.
 */
WEFT_API int weft_run_columns(weft_stmt *stmt, const struct ArrowSchema *schema,
                              const struct ArrowArray *array, int64_t *rows_out);

/*
 * Bind an array to one parameter, to be read with the table carray(?1):
 *     SELECT * FROM t WHERE id IN (SELECT value FROM carray(?1))
 * `values` are int64_t (WEFT_INTEGER), double (WEFT_FLOAT) or const char * (WEFT_TEXT, NULL for
 * NULL).  The values, and the texts, are copied.
 */
WEFT_API int
weft_bind_array(weft_stmt *stmt, int index, int type, const void *values, size_t count);

WEFT_API bool weft_stmt_readonly(weft_stmt *stmt);
WEFT_API const char *weft_stmt_sql(weft_stmt *stmt);
WEFT_API int64_t weft_changes(weft_db *db); /* By the last INSERT, UPDATE or DELETE. */
WEFT_API int64_t weft_total_changes(weft_db *db);
WEFT_API int64_t weft_last_insert_rowid(weft_db *db);
WEFT_API bool weft_autocommit(weft_db *db); /* False inside BEGIN. */

/*
 * Transactions.  Isolation: SNAPSHOT sees one moment and fails with WEFT_BUSY_SNAPSHOT where it
 * would overwrite what it has not seen; READ_COMMITTED takes a new moment for each statement;
 * SERIALIZABLE also fails where what it has read was changed.  WEFT_LEVEL_DEFAULT: that of the
 * connection.  weft_rollback() outside of a transaction does nothing.
 */
enum {
    WEFT_LEVEL_DEFAULT = 0,
    WEFT_LEVEL_READ_COMMITTED = 1,
    WEFT_LEVEL_SNAPSHOT = 2,
    WEFT_LEVEL_SERIALIZABLE = 3
};
WEFT_API int weft_begin(weft_db *db, int level);
WEFT_API int weft_commit(weft_db *db);
WEFT_API int weft_rollback(weft_db *db);

/* Write a checkpoint now, so that a later open replays nothing. */
WEFT_API int weft_checkpoint(weft_db *db);

typedef struct weft_statistics {
    uint64_t commits, rollbacks, row_waits, deadlocks, conflicts;
    uint64_t log_syncs, log_bytes, group_commits, checkpoints;
    uint64_t transactions_open, versions_live, version_bytes, file_bytes, memory_bytes;
} weft_statistics;
WEFT_API int weft_stats(weft_db *db, weft_statistics *statistics_out);

/*
 * Copy the database `name` ("main", or an attached one) into the new file `path`: what is committed
 * when it begins, while others read and write.  A database in a file is copied page by page, and
 * the copy gets its name when it is whole and durable; one in memory row by row, in one transaction
 * of the new file.  weft_interrupt() ends it.  WEFT_CANTOPEN if there is such a file already.
 */
WEFT_API int weft_backup(weft_db *db, const char *name, const char *path);

#ifdef __cplusplus
}
#endif
#endif
