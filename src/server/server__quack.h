/*
 * server__quack.h -- the line protocol Quack: one JSON object a line, docs/quack.md.
 */
#pragma once

#include "server/server__conn.h"

/* Append the banner to the connection's output. */
MUST_CHECK Err quack__banner(Conn *conn);
/* Run one request line and append its replies.  [parks]  ERR_NOMEM: the connection must end. */
MUST_CHECK Err quack__line(Conn *conn, Slice line);
/* Append an error reply that belongs to no request. */
MUST_CHECK Err quack__error(Conn *conn, int code, const char *name, const char *text);
/* Finalize statements and free what quack__line() kept.  NULL allowed. */
void quack__free(QuackState *quack);
