/*
 * show.h -- what SQL may ask of the server: weft_sessions, weft_end_session(id).
 */
#pragma once

#include "server/server.h"
#include "value/func.h"

/* SessionHooks.find_table_func */
const TableFunc *show__table_func(void *arg, Slice name);
/* The built-in functions and ours. */
const FuncTable *show__functions(Server *server);
MUST_CHECK Err show__init(Server *server);
void show__free(Server *server);
