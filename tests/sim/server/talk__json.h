/*
 * talk__json.h -- parts of requests and answers; private to talk*.c.
 */
#pragma once

#include "talk.h"

/* ---- writing ---- */
void talk__tag_next(Talk *talk, char tag[TAG_BYTES]);
void talk__args_write(JsonWriter *json, bool is_hrana, const Ask *ask, const char *tag);
/* `stored`: its text is kept on the server under this number; below 0: it comes along. */
void talk__stmt_write(JsonWriter *json, const Ask *ask, const char *tag, i32 stored);
/* An object with its type; the caller ends it. */
void talk__request_write(JsonWriter *json, const char *type);
/* A number under which the statement is to be stored; below 0: it is not. */
i32 talk__stored_draw(const Talk *talk);
void talk__store_write(JsonWriter *json, i32 number, const char *sql);
/* A batch of the one statement. */
void talk__steps_of_one(JsonWriter *json, const Ask *ask, const char *tag);
/* BEGIN, statements, COMMIT if all went well, ROLLBACK if the COMMIT did not. */
void talk__batch_write(JsonWriter *json, const Ask *asks, u32 count, const char *tag);

/* ---- reading; what is not an answer to the tag fails the run ---- */
void talk__code_take(Answer *answer, const JsonNode *error, const char *member);
void talk__row_take(Answer *answer, const JsonNode *row, bool is_hrana, const char *tag);
void talk__result_take(Answer *answer, const JsonNode *result, const char *tag);
void talk__entry_take(const JsonNode *entry, const char *tag, Answer *answer);
/* The COMMIT's fate; every statement before it must have been itself. */
void talk__batch_take(const JsonNode *result, u32 count, const char *tag, Answer *answer);

/* ---- the WebSocket (talk_ws.c) ---- */
bool talk__ws_send(Talk *talk, u32 lane, const Ask *ask);
bool talk__ws_wait(Talk *talk, u32 lane);
bool
talk__ws_batch(Talk *talk, u32 lane, const Ask *asks, u32 count, const char *tag, Answer *answer);
bool talk__ws_cursor(Talk *talk, u32 lane, const Ask *ask, const char *tag, Answer *answer);
