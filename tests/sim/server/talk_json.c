/*
 * talk_json.c -- what requests and answers look like as JSON, whatever carries them.
 */
#include <stdio.h>
#include <string.h>

#include "rt/sim/sim.h"
#include "talk__json.h"

/* ---- requests ---- */

void
talk__tag_next(Talk *talk, char tag[TAG_BYTES])
{
    snprintf(tag, TAG_BYTES, "c%u-%llu", talk->who, (unsigned long long)++*talk->serial);
}

static void
arg_text(JsonWriter *json, bool is_hrana, const char *text)
{
    if (!is_hrana) {
        json_write_string(json, text);
        return;
    }
    json_begin_object(json);
    json_key(json, "type");
    json_write_string(json, "text");
    json_key(json, "value");
    json_write_string(json, text);
    json_end_object(json);
}

static void
arg_number(JsonWriter *json, bool is_hrana, i64 number)
{
    char digits[24];
    if (!is_hrana) {
        json_write_int(json, number);
        return;
    }
    snprintf(digits, sizeof(digits), "%lld", (long long)number);
    json_begin_object(json);
    json_key(json, "type");
    json_write_string(json, "integer");
    json_key(json, "value");
    json_write_string(json, digits);
    json_end_object(json);
}

void
talk__args_write(JsonWriter *json, bool is_hrana, const Ask *ask, const char *tag)
{
    json_begin_array(json);
    if (ask->count > 0 || strchr(ask->sql, '?') != NULL) arg_text(json, is_hrana, tag);
    for (u32 i = 0; i < ask->count; i++)
        arg_number(json, is_hrana, ask->arg[i]);
    if (ask->pair != NULL) arg_text(json, is_hrana, ask->pair);
    json_end_array(json);
}

/* `stored`: its text is kept on the server under this number; below 0: it comes along. */
void
talk__stmt_write(JsonWriter *json, const Ask *ask, const char *tag, i32 stored)
{
    json_begin_object(json);
    json_key(json, stored < 0 ? "sql" : "sql_id");
    if (stored < 0)
        json_write_string(json, ask->sql);
    else
        json_write_int(json, stored);
    json_key(json, "args");
    talk__args_write(json, true, ask, tag);
    json_key(json, "want_rows");
    json_write_bool(json, true);
    json_end_object(json);
}

/* ---- answers ---- */

void
talk__code_take(Answer *answer, const JsonNode *error, const char *member)
{
    Slice code;
    *answer = (Answer){0};
    if (!json_get_text(json_member(error, member), &code)) rt_sim_fail("an error has no code");
    snprintf(answer->code, sizeof(answer->code), "%.*s", (int)code.bytes, (const char *)code.p);
}

static bool
cell_number(const JsonNode *cell, bool is_hrana, i64 *number_out)
{
    Slice text;
    if (!is_hrana) return json_get_int(cell, number_out);
    if (!json_get_text(json_member(cell, "value"), &text)) return false;
    char digits[24] = {0};
    memcpy(digits, text.p, MIN_OF(text.bytes, sizeof(digits) - 1));
    long long number;
    if (sscanf(digits, "%lld", &number) != 1) return false;
    *number_out = number;
    return true;
}

/* A row: the tag of its own request, then numbers. */
void
talk__row_take(Answer *answer, const JsonNode *row, bool is_hrana, const char *tag)
{
    Slice text;
    const JsonNode *cell = row->type == JSON_ARRAY ? row->u.first : NULL;
    const JsonNode *first = is_hrana ? json_member(cell, "value") : cell;
    if (!json_get_text(first, &text) || !slice_equal(text, SLICE(tag, strlen(tag))))
        rt_sim_fail("an answer of another request: wanted %s, got %.*s", tag, (int)text.bytes,
                    (const char *)text.p);
    if (answer->rows == ROWS_MAX) rt_sim_fail("too many rows");
    u32 column = 0;
    for (cell = cell->next; cell != NULL; cell = cell->next) {
        if (column == COLS_MAX || !cell_number(cell, is_hrana, &answer->cell[answer->rows][column]))
            rt_sim_fail("a strange value for %s", tag);
        column++;
    }
    answer->rows++;
}

/* A StmtResult. */
void
talk__result_take(Answer *answer, const JsonNode *result, const char *tag)
{
    const JsonNode *rows = json_member(result, "rows");
    *answer = (Answer){.good = true};
    if (rows == NULL || rows->type != JSON_ARRAY) rt_sim_fail("a result has no rows");
    for (const JsonNode *row = rows->u.first; row != NULL; row = row->next)
        talk__row_take(answer, row, true, tag);
}

/* ---- shared by the carriers of Hrana ---- */

void
talk__request_write(JsonWriter *json, const char *type)
{
    json_begin_object(json);
    json_key(json, "type");
    json_write_string(json, type);
}

/* A number under which the statement is to be stored; below 0: it is not. */
i32
talk__stored_draw(const Talk *talk)
{
    return talk->link.version >= 2 && rt_sim_draw(3) == 0 ? (i32)rt_sim_draw(STORED) : -1;
}

void
talk__store_write(JsonWriter *json, i32 number, const char *sql)
{
    json_key(json, "sql_id");
    json_write_int(json, number);
    if (sql == NULL) return;
    json_key(json, "sql");
    json_write_string(json, sql);
}

void
talk__entry_take(const JsonNode *entry, const char *tag, Answer *answer)
{
    Slice type;
    if (!json_get_text(json_member(entry, "type"), &type)) rt_sim_fail("an entry has no type");
    if (slice_equal(type, SLICE_LITERAL("row")))
        talk__row_take(answer, json_member(entry, "row"), true, tag);
    if (slice_equal(type, SLICE_LITERAL("step_end"))) answer->good = true;
    if (slice_equal(type, SLICE_LITERAL("step_error")) || slice_equal(type, SLICE_LITERAL("error")))
        talk__code_take(answer, json_member(entry, "error"), "code");
}

void
talk__steps_of_one(JsonWriter *json, const Ask *ask, const char *tag)
{
    json_key(json, "batch");
    json_begin_object(json);
    json_key(json, "steps");
    json_begin_array(json);
    json_begin_object(json);
    json_key(json, "stmt");
    talk__stmt_write(json, ask, tag, -1);
    json_end_object(json);
    json_end_array(json);
    json_end_object(json);
}

static void
step_write(JsonWriter *json, const Ask *ask, const char *tag, i64 after, bool negated)
{
    json_begin_object(json);
    if (after >= 0) {
        json_key(json, "condition");
        json_begin_object(json);
        json_key(json, "type");
        json_write_string(json, negated ? "not" : "ok");
        if (negated) {
            json_key(json, "cond");
            talk__request_write(json, "ok");
        }
        json_key(json, "step");
        json_write_int(json, after);
        if (negated) json_end_object(json);
        json_end_object(json);
    }
    json_key(json, "stmt");
    talk__stmt_write(json, ask, tag, -1);
    json_end_object(json);
}

/* BEGIN, statements, COMMIT if all went well, ROLLBACK if the COMMIT did not. */
void
talk__batch_write(JsonWriter *json, const Ask *asks, u32 count, const char *tag)
{
    const Ask begin = {.sql = "BEGIN IMMEDIATE"}, commit = {.sql = "COMMIT"},
              rollback = {.sql = "ROLLBACK"};
    json_key(json, "batch");
    json_begin_object(json);
    json_key(json, "steps");
    json_begin_array(json);
    step_write(json, &begin, tag, -1, false);
    for (u32 i = 0; i < count; i++)
        step_write(json, &asks[i], tag, i, false);
    step_write(json, &commit, tag, count, false);
    step_write(json, &rollback, tag, (i64)count + 1, true);
    json_end_array(json);
    json_end_object(json);
}

static const JsonNode *
item(const JsonNode *array, u32 index)
{
    const JsonNode *at = array != NULL && array->type == JSON_ARRAY ? array->u.first : NULL;
    while (at != NULL && index-- > 0)
        at = at->next;
    if (at == NULL) rt_sim_fail("a batch result is short");
    return at;
}

/* The COMMIT's fate; every statement before it must have been itself. */
void
talk__batch_take(const JsonNode *result, u32 count, const char *tag, Answer *answer)
{
    const JsonNode *results = json_member(result, "step_results");
    const JsonNode *errors = json_member(result, "step_errors");
    if (results == NULL || results->count != count + 3) rt_sim_fail("a batch has other steps");
    for (u32 i = 0; i <= count + 1; i++) {
        if (!json_is_null(item(errors, i))) {
            talk__code_take(answer, item(errors, i), "code");
            return;
        }
        if (json_is_null(item(results, i))) rt_sim_fail("a step of a batch was left out");
        talk__result_take(answer, item(results, i), tag);
    }
}
