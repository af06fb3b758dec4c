/*
 * hrana_http.h -- Hrana over HTTP: what route.c calls with a complete, authorised request.
 */
#pragma once

#include "server/http/http.h"

void hrana__http_pipeline(Conn *conn, ServedDb *db, SeatRights rights, u32 version, bool is_pb);
void hrana__http_cursor(Conn *conn, ServedDb *db, SeatRights rights, bool is_pb);
/* Version 1: POST /v1/execute and /v1/batch. */
void hrana__http_v1(Conn *conn, ServedDb *db, SeatRights rights, bool is_batch);
/* The oldest form: POST / with {"statements": [...]}. */
void hrana__http_legacy(Conn *conn, ServedDb *db, SeatRights rights);
