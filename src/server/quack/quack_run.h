/*
 * quack_run.h -- running statements for Quack requests; private to server/quack/.
 */
#pragma once

#include "server/server__quack.h"
#include "value/json.h"

#define QUACK_CACHE_SIZE 8

/* A prepared statement under a number that the client knows. */
typedef struct QuackHandle {
    i64 number;
    weft_stmt *stmt;
} QuackHandle;

/* Statements of earlier "q" requests, kept by their text. */
typedef struct QuackCached {
    weft_stmt *stmt; /* NULL: free. */
    char *text;
    size_t text_bytes;
    u64 last_use;
} QuackCached;

struct QuackState {
    Arena arena; /* The request being run. */
    Buf scratch; /* One decoded blob, one error text. */
    QuackHandle *handle;
    u32 handle_count, handle_capacity;
    i64 next_handle;
    QuackCached cache[QUACK_CACHE_SIZE];
    u64 uses;
};

/* What went wrong with a request. */
typedef struct Failure {
    int code;         /* Extended SQLITE_* code. */
    const char *name; /* Static. */
    Slice text;       /* In `scratch` or static. */
    i32 offset;       /* Into the SQL text; -1: none. */
    i64 row;          /* Of "rows"; -1: none. */
} Failure;

/* Begin a reply object with the request's id (may be NULL). */
void quack__reply_begin(Conn *conn, const JsonNode *id, JsonWriter *writer_out);
/* End object and line; `start` is where the line began in conn->out.  On failure the line is taken
   back. */
MUST_CHECK Err quack__reply_end(Conn *conn, JsonWriter *writer, size_t start);
MUST_CHECK Err quack__error_reply(Conn *conn, const JsonNode *id, const Failure *failure);

/* The requests; `value` is the member that names them. */
MUST_CHECK Err quack__query(Conn *conn, const JsonNode *request, const JsonNode *id,
                            const JsonNode *value);
MUST_CHECK Err quack__exec(Conn *conn, const JsonNode *request, const JsonNode *id,
                           const JsonNode *value);
MUST_CHECK Err quack__prepare(Conn *conn, const JsonNode *request, const JsonNode *id,
                              const JsonNode *value);
MUST_CHECK Err quack__script(Conn *conn, const JsonNode *request, const JsonNode *id,
                             const JsonNode *value);
/* False: no such handle. */
bool quack__handle_close(Conn *conn, i64 number);

/* Bind `params` (array, object or NULL for none) to a statement.  False: *failure_out says why. */
bool quack__bind(Conn *conn, weft_stmt *stmt, const JsonNode *params, Failure *failure_out);
/* Append {"row": [...]} with the current row. */
MUST_CHECK Err quack__row(Conn *conn, weft_stmt *stmt, const JsonNode *id);
/* True for statements that would open files by name on behalf of a client. */
bool quack__reaches_files(Slice sql);
