/*
 * server__quack.h -- the line protocol Quack: one JSON object a line, docs/quack.md.
 */
#pragma once

#include "server/server__conn.h"

/* Append the banner to the connection's output. */
MUST_CHECK Err quack__banner(Conn *conn);
/* Append an error reply that belongs to no request. */
MUST_CHECK Err quack__error(Conn *conn, int code, const char *name, const char *text);
