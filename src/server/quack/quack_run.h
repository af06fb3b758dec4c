/*
 * quack_run.h -- running statements for Quack requests; private to server/quack/.
 */
#pragma once

#include "server/server__quack.h"
#include "value/json.h"

/* A prepared statement under a number that the client knows. */
typedef struct QuackHandle {
    i64 number;
    Stmt *stmt;
} QuackHandle;

struct QuackState {
    Arena arena; /* The request being run. */
    Buf scratch; /* One decoded blob. */
    Fault fault;
    QuackHandle *handle;
    u32 handle_count, handle_capacity;
    i64 next_handle;
    char database[DB_NAME_BYTES]; /* Chosen by "use"; "": the default. */
    bool one_database;            /* The token is for that one only. */
};

/* Begin a reply object with the request's id (may be NULL). */
void quack__reply_begin(Conn *conn, const JsonNode *id, JsonWriter *writer_out);
/* End object and line; `start` is where the line began in conn->out.  On failure the line is taken
   back. */
MUST_CHECK Err quack__reply_end(Conn *conn, JsonWriter *writer, size_t start);
/* Answer with an error: quack->fault, and its row if that is not negative. */
MUST_CHECK Err quack__error_reply(Conn *conn, const JsonNode *id, const Fault *fault, i64 row);

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

/* Bind `params` (array, object or NULL for none) to a statement.  False: *fault says why. */
bool quack__bind(Conn *conn, Stmt *stmt, const JsonNode *params, Fault *fault);
/* Append {"row": [...]} with the current row. */
MUST_CHECK Err quack__row(Conn *conn, Stmt *stmt, const JsonNode *id);
/* Why the seat cannot be left now; NULL: it can. */
const char *quack__why_stays(const Conn *conn);
/* Choose the database; only before the first statement of a session, or outside a transaction. */
MUST_CHECK Err quack__use(Conn *conn, const JsonNode *request, const JsonNode *id,
                          const JsonNode *value);
/* Run one request line and append its replies.  [parks]  ERR_NOMEM: the connection must end. */
MUST_CHECK Err quack__line(Conn *conn, Slice line);
/* Leave the seat: rolls back. */
void quack__seat_close(Conn *conn);
