/*
 * talk.c -- requests and answers as JSON of the three protocols.
 */
#include "talk.h"

#include <stdio.h>
#include <string.h>

#include "rt/sim/sim.h"
#include "rt/time.h"

/* ---- requests ---- */

static void
tag_next(Talk *talk, char tag[TAG_BYTES])
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

static void
args_write(JsonWriter *json, bool is_hrana, const Ask *ask, const char *tag)
{
    json_begin_array(json);
    if (ask->count > 0 || strchr(ask->sql, '?') != NULL) arg_text(json, is_hrana, tag);
    for (u32 i = 0; i < ask->count; i++)
        arg_number(json, is_hrana, ask->arg[i]);
    if (ask->pair != NULL) arg_text(json, is_hrana, ask->pair);
    json_end_array(json);
}

static void
stmt_write(JsonWriter *json, const Ask *ask, const char *tag)
{
    json_begin_object(json);
    json_key(json, "sql");
    json_write_string(json, ask->sql);
    json_key(json, "args");
    args_write(json, true, ask, tag);
    json_key(json, "want_rows");
    json_write_bool(json, true);
    json_end_object(json);
}

/* ---- answers ---- */

static void
code_take(Answer *answer, const JsonNode *error, const char *member)
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
static void
row_take(Answer *answer, const JsonNode *row, bool is_hrana, const char *tag)
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
static void
result_take(Answer *answer, const JsonNode *result, const char *tag)
{
    const JsonNode *rows = json_member(result, "rows");
    *answer = (Answer){.good = true};
    if (rows == NULL || rows->type != JSON_ARRAY) rt_sim_fail("a result has no rows");
    for (const JsonNode *row = rows->u.first; row != NULL; row = row->next)
        row_take(answer, row, true, tag);
}

/* ---- Quack ---- */

static bool
quack_send(Talk *talk, const Ask *ask, const char *tag)
{
    Buf text = {0};
    JsonWriter json;
    json_writer_init(&json, &text);
    json_begin_object(&json);
    json_key(&json, "id");
    json_write_string(&json, tag);
    json_key(&json, "q");
    json_write_string(&json, ask->sql);
    json_key(&json, "params");
    args_write(&json, false, ask, tag);
    json_end_object(&json);
    bool good = json_writer_done(&json) == OK && buf_append_byte(&text, '\n') == OK &&
                link_send(&talk->link, buf_slice(&text));
    buf_free(&text);
    return good;
}

static bool
quack_wait(Talk *talk, const char *tag, Answer *answer)
{
    *answer = (Answer){0};
    for (;;) {
        const JsonNode *line, *row;
        Slice id;
        if (!link_line(&talk->link, &line)) return false;
        const JsonNode *error = json_member(line, "err");
        if (!json_get_text(json_member(line, "id"), &id)) {
            if (error == NULL) rt_sim_fail("a line of nobody's");
            code_take(answer, error, "name"); /* The connection's, not the request's. */
            if (strcmp(answer->code, "QUACK_LIMIT") != 0 && strcmp(answer->code, "QUACK_IDLE") != 0)
                rt_sim_fail("the connection is blamed: %s", answer->code);
            return false;
        }
        if (!slice_equal(id, SLICE(tag, strlen(tag))))
            rt_sim_fail("the line of another request: wanted %s, got %.*s", tag, (int)id.bytes,
                        (const char *)id.p);
        if (error != NULL) {
            code_take(answer, error, "name");
            return true;
        }
        answer->good = json_member(line, "done") != NULL;
        if (answer->good) return true;
        row = json_member(line, "row");
        if (row != NULL) row_take(answer, row, false, tag);
    }
}

bool
talk_pipeline(Talk *talk, const Ask *asks, u32 count, Answer *answers)
{
    char tags[8][TAG_BYTES];
    ASSERT(count <= COUNT_OF(tags));
    for (u32 i = 0; i < count; i++) {
        tag_next(talk, tags[i]);
        if (!quack_send(talk, &asks[i], tags[i])) return false;
    }
    for (u32 i = 0; i < count; i++)
        if (!quack_wait(talk, tags[i], &answers[i])) return false;
    return true;
}

bool
talk_script(Talk *talk, const char *sql, Answer *answer)
{
    char tag[TAG_BYTES];
    Buf text = {0};
    JsonWriter json;
    tag_next(talk, tag);
    json_writer_init(&json, &text);
    json_begin_object(&json);
    json_key(&json, "id");
    json_write_string(&json, tag);
    json_key(&json, "script");
    json_write_string(&json, sql);
    json_end_object(&json);
    bool good = json_writer_done(&json) == OK && buf_append_byte(&text, '\n') == OK &&
                link_send(&talk->link, buf_slice(&text));
    buf_free(&text);
    return good && quack_wait(talk, tag, answer);
}

/* ---- HTTP ---- */

/* The answer of a pipeline or cursor: its baton is the next one. */
static void
baton_take(Link *link, const JsonNode *root)
{
    Slice baton;
    link->baton[0] = 0;
    if (!json_get_text(json_member(root, "baton"), &baton)) return;
    if (baton.bytes >= BATON_MAX) rt_sim_fail("a long baton");
    memcpy(link->baton, baton.p, baton.bytes);
    link->baton[baton.bytes] = 0;
}

static void
pipeline_begin(Talk *talk, JsonWriter *json, Buf *text)
{
    json_writer_init(json, text);
    json_begin_object(json);
    json_key(json, "baton");
    if (talk->link.baton[0] != 0)
        json_write_string(json, talk->link.baton);
    else
        json_write_null(json);
}

/* What is not 200 ends the stream; a bad request is our own mistake, unless the stream expired. */
static bool
status_good(Talk *talk, u32 status, Slice body)
{
    bool had_baton = talk->link.baton[0] != 0;
    if (status == 200) return true;
    talk->link.baton[0] = 0;
    if (status >= 500 || status == 429 || status == 408 || (status == 400 && had_baton))
        return false;
    rt_sim_fail("HTTP status %u: %.*s", status, (int)MIN_OF(body.bytes, (size_t)100),
                (const char *)body.p);
}

/* Send the requests, read the answer, give out its results. */
static bool
pipeline_end(Talk *talk, JsonWriter *json, Buf *text, const JsonNode **results_out)
{
    u32 status;
    Slice body;
    const JsonNode *root;
    Link *link = &talk->link;
    json_end_array(json);
    json_end_object(json);
    const char *path = link->version == 2 ? "/v2/pipeline" : "/v3/pipeline";
    bool good = json_writer_done(json) == OK &&
                link_post(link, path, buf_slice(text), &status, &body);
    buf_free(text);
    if (!good || !status_good(talk, status, body)) return false;
    if (!link_parse(link, body, &root)) return false;
    baton_take(link, root);
    const JsonNode *results = json_member(root, "results");
    if (results == NULL || results->type != JSON_ARRAY) rt_sim_fail("no results");
    *results_out = results;
    return true;
}

static void
request_write(JsonWriter *json, const char *type)
{
    json_begin_object(json);
    json_key(json, "type");
    json_write_string(json, type);
}

/* The response inside the first result, or its error. */
static const JsonNode *
response_of(const JsonNode *results, u32 wanted, const char *type, Answer *answer)
{
    Slice text;
    if (results->count != wanted) rt_sim_fail("%u results of %u requests", results->count, wanted);
    const JsonNode *first = results->u.first, *error = json_member(first, "error");
    if (error != NULL) {
        code_take(answer, error, "code");
        return NULL;
    }
    const JsonNode *response = json_member(first, "response");
    if (!json_get_text(json_member(response, "type"), &text) ||
        !slice_equal(text, SLICE(type, strlen(type))))
        rt_sim_fail("the response is of another type");
    return json_member(response, "result");
}

static bool
http_ask(Talk *talk, const Ask *ask, Answer *answer)
{
    char tag[TAG_BYTES];
    Buf text = {0};
    JsonWriter json;
    const JsonNode *results;
    tag_next(talk, tag);
    pipeline_begin(talk, &json, &text);
    json_key(&json, "requests");
    json_begin_array(&json);
    request_write(&json, "execute");
    json_key(&json, "stmt");
    stmt_write(&json, ask, tag);
    json_end_object(&json);
    if (!talk->stays) {
        request_write(&json, "close");
        json_end_object(&json);
    }
    if (!pipeline_end(talk, &json, &text, &results)) return false;
    const JsonNode *result = response_of(results, talk->stays ? 1 : 2, "execute", answer);
    if (result != NULL) result_take(answer, result, tag);
    return true;
}

bool
talk_bad_baton(Talk *talk, const char *baton)
{
    u32 status;
    Slice answer;
    Buf text = {0};
    Err err = buf_printf(&text, "{\"baton\":\"%s\",\"requests\":[]}", baton);
    bool good = err == OK &&
                link_post(&talk->link, "/v2/pipeline", buf_slice(&text), &status, &answer);
    buf_free(&text);
    if (!good) return false;
    if (status < 400) rt_sim_fail("a bad baton was taken");
    return status == 400;
}

static void
entry_take(const JsonNode *entry, const char *tag, Answer *answer)
{
    Slice type;
    if (!json_get_text(json_member(entry, "type"), &type)) rt_sim_fail("an entry has no type");
    if (slice_equal(type, SLICE_LITERAL("row")))
        row_take(answer, json_member(entry, "row"), true, tag);
    if (slice_equal(type, SLICE_LITERAL("step_end"))) answer->good = true;
    if (slice_equal(type, SLICE_LITERAL("step_error")) || slice_equal(type, SLICE_LITERAL("error")))
        code_take(answer, json_member(entry, "error"), "code");
}

/* The lines of a cursor's body. */
static bool
entries_take(Talk *talk, Slice body, const char *tag, Answer *answer)
{
    bool first = true;
    *answer = (Answer){0};
    while (body.bytes > 0) {
        const JsonNode *entry;
        const u8 *end = memchr(body.p, '\n', body.bytes);
        if (end == NULL) rt_sim_fail("the last line has no end");
        size_t bytes = (size_t)(end - body.p);
        if (!link_parse(&talk->link, SLICE(body.p, bytes), &entry)) return false;
        body = SLICE(body.p + bytes + 1, body.bytes - bytes - 1);
        if (first)
            baton_take(&talk->link, entry);
        else
            entry_take(entry, tag, answer);
        first = false;
    }
    if (!answer->good && answer->code[0] == 0) rt_sim_fail("a cursor's step has no end");
    return true;
}

bool
talk_cursor(Talk *talk, const Ask *ask, Answer *answer)
{
    u32 status;
    char tag[TAG_BYTES];
    Slice body;
    Buf text = {0};
    JsonWriter json;
    tag_next(talk, tag);
    pipeline_begin(talk, &json, &text);
    json_key(&json, "batch");
    json_begin_object(&json);
    json_key(&json, "steps");
    json_begin_array(&json);
    json_begin_object(&json);
    json_key(&json, "stmt");
    stmt_write(&json, ask, tag);
    json_end_object(&json);
    json_end_array(&json);
    json_end_object(&json);
    json_end_object(&json);
    bool good = json_writer_done(&json) == OK &&
                link_post(&talk->link, "/v3/cursor", buf_slice(&text), &status, &body);
    buf_free(&text);
    return good && status_good(talk, status, body) && entries_take(talk, body, tag, answer);
}

/* ---- batches ---- */

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
            request_write(json, "ok");
        }
        json_key(json, "step");
        json_write_int(json, after);
        if (negated) json_end_object(json);
        json_end_object(json);
    }
    json_key(json, "stmt");
    stmt_write(json, ask, tag);
    json_end_object(json);
}

/* BEGIN, statements, COMMIT if all went well, ROLLBACK if the COMMIT did not. */
static void
batch_write(JsonWriter *json, const Ask *asks, u32 count, const char *tag)
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
static void
batch_take(const JsonNode *result, u32 count, const char *tag, Answer *answer)
{
    const JsonNode *results = json_member(result, "step_results");
    const JsonNode *errors = json_member(result, "step_errors");
    if (results == NULL || results->count != count + 3) rt_sim_fail("a batch has other steps");
    for (u32 i = 0; i <= count + 1; i++) {
        if (!json_is_null(item(errors, i))) {
            code_take(answer, item(errors, i), "code");
            return;
        }
        if (json_is_null(item(results, i))) rt_sim_fail("a step of a batch was left out");
        result_take(answer, item(results, i), tag);
    }
}

static bool
http_batch(Talk *talk, const Ask *asks, u32 count, const char *tag, Answer *answer)
{
    Buf text = {0};
    JsonWriter json;
    const JsonNode *results;
    pipeline_begin(talk, &json, &text);
    json_key(&json, "requests");
    json_begin_array(&json);
    request_write(&json, "batch");
    batch_write(&json, asks, count, tag);
    json_end_object(&json);
    request_write(&json, "close");
    json_end_object(&json);
    if (!pipeline_end(talk, &json, &text, &results)) return false;
    const JsonNode *result = response_of(results, 2, "batch", answer);
    if (result != NULL) batch_take(result, count, tag, answer);
    return true;
}

/* ---- WebSocket ---- */

static void
ws_begin(Talk *talk, u32 lane, JsonWriter *json, Buf *text, const char *type)
{
    /* Every lane counts for itself, and ids are used again at once, as clients do. */
    talk->lane[lane].request = 1 + lane * 1000 + (talk->next_request++ % 3);
    json_writer_init(json, text);
    request_write(json, "request");
    json_key(json, "request_id");
    json_write_int(json, talk->lane[lane].request);
    json_key(json, "request");
    request_write(json, type);
    json_key(json, "stream_id");
    json_write_int(json, lane);
}

static bool
ws_end(Talk *talk, JsonWriter *json, Buf *text)
{
    json_end_object(json);
    json_end_object(json);
    bool good = json_writer_done(json) == OK && link_message_send(&talk->link, buf_slice(text));
    buf_free(text);
    return good;
}

/* A message: the answer of some lane. */
static bool
ws_take(Talk *talk, const JsonNode **response_out, Lane **lane_out)
{
    const JsonNode *root;
    i64 id;
    if (!link_message(&talk->link, &root)) return false;
    if (!json_get_int(json_member(root, "request_id"), &id)) rt_sim_fail("an answer of nobody's");
    for (u32 i = 0; i < LANES; i++) {
        Lane *lane = &talk->lane[i];
        if (lane->request != id) continue;
        const JsonNode *error = json_member(root, "error");
        lane->request = 0;
        *lane_out = lane;
        *response_out = json_member(root, "response");
        lane->answer = (Answer){.good = error == NULL};
        if (error != NULL) code_take(&lane->answer, error, "code");
        return true;
    }
    rt_sim_fail("an answer that nobody waits for: %lld", (long long)id);
}

/* Until the lane has its answer; the others' are kept. */
static bool
ws_wait(Talk *talk, u32 lane)
{
    while (talk->lane[lane].request != 0) {
        Lane *which;
        const JsonNode *response;
        if (!ws_take(talk, &response, &which)) return false;
        if (which->answer.good && which->wants_rows)
            result_take(&which->answer, json_member(response, "result"), which->tag);
    }
    return true;
}

static bool
ws_lane_open(Talk *talk, u32 lane)
{
    Buf text = {0};
    JsonWriter json;
    ws_begin(talk, lane, &json, &text, "open_stream");
    talk->lane[lane].wants_rows = false;
    if (!ws_end(talk, &json, &text) || !ws_wait(talk, lane)) return false;
    talk->lane[lane].is_open = talk->lane[lane].answer.good;
    return talk->lane[lane].is_open;
}

static bool
ws_batch(Talk *talk, u32 lane, const Ask *asks, u32 count, const char *tag, Answer *answer)
{
    Buf text = {0};
    JsonWriter json;
    Lane *which;
    const JsonNode *response;
    ws_begin(talk, lane, &json, &text, "batch");
    batch_write(&json, asks, count, tag);
    if (!ws_end(talk, &json, &text) || !ws_take(talk, &response, &which)) return false;
    *answer = which->answer;
    if (answer->good) batch_take(json_member(response, "result"), count, tag, answer);
    return true;
}

/* ---- all of them ---- */

bool
talk_send(Talk *talk, u32 lane, const Ask *ask)
{
    Buf text = {0};
    JsonWriter json;
    Lane *to = &talk->lane[lane];
    ASSERT(talk->link.kind == LINK_WS && to->request == 0);
    if (!to->is_open && !ws_lane_open(talk, lane)) return false;
    tag_next(talk, to->tag);
    ws_begin(talk, lane, &json, &text, "execute");
    to->wants_rows = true;
    json_key(&json, "stmt");
    stmt_write(&json, ask, to->tag);
    return ws_end(talk, &json, &text);
}

bool
talk_wait(Talk *talk, u32 lane, Answer *answer)
{
    if (!ws_wait(talk, lane)) return false;
    *answer = talk->lane[lane].answer;
    return true;
}

bool
talk_ask(Talk *talk, u32 lane, const Ask *ask, Answer *answer)
{
    if (talk->link.kind == LINK_QUACK) return talk_pipeline(talk, ask, 1, answer);
    if (talk->link.kind == LINK_HTTP) return http_ask(talk, ask, answer);
    return talk_send(talk, lane, ask) && talk_wait(talk, lane, answer);
}

bool
talk_batch(Talk *talk, u32 lane, const Ask *asks, u32 count, Answer *answer)
{
    char tag[TAG_BYTES];
    tag_next(talk, tag);
    if (talk->link.kind == LINK_HTTP) return http_batch(talk, asks, count, tag, answer);
    if (!talk->lane[lane].is_open && !ws_lane_open(talk, lane)) return false;
    return ws_batch(talk, lane, asks, count, tag, answer);
}

bool
talk_open(Talk *talk, LinkKind kind, u64 patience_ns)
{
    for (u32 i = 0; i < LANES; i++)
        talk->lane[i] = (Lane){0};
    talk->stays = false;
    return link_open(&talk->link, kind, patience_ns);
}

void
talk_close(Talk *talk)
{
    link_close(&talk->link);
}
