/*
 * dump.h -- GET /dump: a database as SQL text.
 */
#pragma once

#include "server/http/http.h"

void dump__reply(Conn *conn, ServedDb *db, SeatRights rights);
