/*
 * session_kit.h -- sessions for tests: several on one named in-memory database, statements as
 * one-liners, answers as text.
 */
#pragma once

#include <stdio.h>
#include <string.h>

#include "rt/process.h"
#include "session/session.h"
#include "unit/cmocka_all.h"

#define MS ((u64)1000000)

/* Another connection to the database `name`; "" makes a private one. */
static inline Session *
kit_open(const char *name, bool single)
{
    SessionOptions options = {
        .create = true,
        .in_memory = name[0] != 0,
        .single_writer = single,
        .sync = STORE_SYNC_FULL,
        .level = STORE_SNAPSHOT,
        .busy_timeout_ns = 0,
    };
    Session *session;
    ErrMsg msg = {.sql_offset = -1};
    Err err = session_open(rt_process_default(), name, &options, &session, &msg);
    if (err != OK) fail_msg("open: %s", err_message(&msg));
    return session;
}

static inline Err
kit_try(Session *session, const char *sql)
{
    return session_exec(session, SLICE(sql, strlen(sql)));
}

#define kit_exec(session, sql) kit_exec_at(session, sql, __FILE__, __LINE__)
static inline void
kit_exec_at(Session *session, const char *sql, const char *file, int line)
{
    if (kit_try(session, sql) == OK) return;
    print_error("%s:%d: %s: %s\n", file, line, sql, err_message(session_error(session)));
    fail();
}

/* Must fail with this code and text. */
#define kit_fails(session, sql, err, text) kit_fails_at(session, sql, err, text, __FILE__, __LINE__)
static inline void
kit_fails_at(Session *session, const char *sql, Err err, const char *text, const char *file,
             int line)
{
    Err got = kit_try(session, sql);
    const char *message = err_message(session_error(session));
    if (got == err && (text == NULL || strcmp(message, text) == 0)) return;
    print_error("%s:%d: %s: %s \"%s\"\n", file, line, sql, err_name(got), message);
    fail();
}

/* Rows of the current statement as "a|b;c|d", from where it stands. */
static inline void
kit_drain(Stmt *stmt, char *out, size_t room)
{
    bool row = true;
    size_t used = strlen(out);
    while (row) {
        Err err = stmt_step(stmt, &row);
        if (err != OK) {
            snprintf(out + used, room - used, "!%s", err_name(err));
            return;
        }
        for (u32 i = 0; row && i < stmt_column_count(stmt); i++) {
            size_t bytes;
            const char *text = stmt_row_text(stmt, i, &bytes);
            used += (size_t)snprintf(out + used, room - used, "%s%s", text == NULL ? "NULL" : text,
                                     i + 1 < stmt_column_count(stmt) ? "|" : ";");
        }
    }
}

#define kit_query(session, sql, expected) kit_query_at(session, sql, expected, __FILE__, __LINE__)
static inline void
kit_query_at(Session *session, const char *sql, const char *expected, const char *file, int line)
{
    Stmt *stmt;
    char out[4096] = "";
    Err err = stmt_prepare(session, SLICE(sql, strlen(sql)), &stmt, NULL);
    if (err == OK) {
        kit_drain(stmt, out, sizeof(out));
        stmt_finalize(stmt);
    } else {
        snprintf(out, sizeof(out), "!%s %s", err_name(err), err_message(session_error(session)));
    }
    if (strcmp(out, expected) == 0) return;
    print_error("%s:%d: %s\n  want %s\n  got  %s\n", file, line, sql, expected, out);
    fail();
}

static inline Stmt *
kit_prepare(Session *session, const char *sql)
{
    Stmt *stmt;
    Err err = stmt_prepare(session, SLICE(sql, strlen(sql)), &stmt, NULL);
    if (err != OK) fail_msg("%s: %s", sql, err_message(session_error(session)));
    return stmt;
}

/* One step that must give a row; its first column as an integer. */
static inline i64
kit_row(Stmt *stmt)
{
    bool row;
    assert_int_equal(stmt_step(stmt, &row), OK);
    assert_true(row);
    return cell_to_int(&stmt_row(stmt)[0]);
}

static inline bool
kit_done(Stmt *stmt)
{
    bool row;
    assert_int_equal(stmt_step(stmt, &row), OK);
    return !row;
}
