/*
 * talk.c -- requests and answers as JSON of the three protocols.
 */
#include "talk__json.h"

#include <stdio.h>
#include <string.h>

#include "pb.h"
#include "rt/sim/sim.h"
#include "rt/time.h"

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
    talk__args_write(&json, false, ask, tag);
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
            talk__code_take(answer, error, "name"); /* The connection's, not the request's. */
            if (strcmp(answer->code, "QUACK_LIMIT") != 0 && strcmp(answer->code, "QUACK_IDLE") != 0)
                rt_sim_fail("the connection is blamed: %s", answer->code);
            return false;
        }
        if (!slice_equal(id, SLICE(tag, strlen(tag))))
            rt_sim_fail("the line of another request: wanted %s, got %.*s", tag, (int)id.bytes,
                        (const char *)id.p);
        if (error != NULL) {
            talk__code_take(answer, error, "name");
            return true;
        }
        answer->good = json_member(line, "done") != NULL;
        if (answer->good) return true;
        row = json_member(line, "row");
        if (row != NULL) talk__row_take(answer, row, false, tag);
    }
}

bool
talk_pipeline(Talk *talk, const Ask *asks, u32 count, Answer *answers)
{
    char tags[8][TAG_BYTES];
    ASSERT(count <= COUNT_OF(tags));
    for (u32 i = 0; i < count; i++) {
        talk__tag_next(talk, tags[i]);
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
    talk__tag_next(talk, tag);
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

/* Whoever is not let in is told why. */
static void
refusal_take(Link *link, Slice body)
{
    const JsonNode *root;
    Slice code = SLICE_LITERAL("?");
    if (!link_parse(link, body, &root)) return;
    if (!json_get_text(json_member(root, "code"), &code)) rt_sim_fail("a refusal has no code");
    snprintf(link->refused, sizeof(link->refused), "%.*s", (int)code.bytes, (const char *)code.p);
}

/* What is not 200 ends the stream; a bad request is our own mistake, unless the stream expired. */
static bool
status_good(Talk *talk, u32 status, Slice body, bool uses_stored)
{
    bool had_baton = talk->link.baton[0] != 0;
    if (status == 200) return true;
    talk->link.baton[0] = 0;
    if (status == 401 || status == 403 || status == 404) {
        refusal_take(&talk->link, body);
        return false;
    }
    /* Storing a text may fail, and then it is not known. */
    bool excused = had_baton || (uses_stored && !talk->is_calm);
    if (status >= 500 || status == 429 || status == 408 || (status == 400 && excused)) return false;
    rt_sim_fail("HTTP status %u: %.*s", status, (int)MIN_OF(body.bytes, (size_t)100),
                (const char *)body.p);
}

/* POST a JSON text, in Protobuf where that is spoken.  *body_out is as it came. */
static bool
post(Talk *talk, PbWhat what, Buf *text, bool uses_stored, Slice *body_out)
{
    u32 status;
    Link *link = &talk->link;
    Buf bytes = {0};
    char path[40];
    snprintf(path, sizeof(path), "/v%u%s/%s", link->version, link->is_pb ? "-protobuf" : "",
             what == PB_CURSOR ? "cursor" : "pipeline");
    bool good = !link->is_pb || pb_request(what, buf_slice(text), &bytes) == OK;
    good = good && link_post(link, path, buf_slice(link->is_pb ? &bytes : text), &status, body_out);
    buf_free(&bytes);
    return good && status_good(talk, status, *body_out, uses_stored);
}

/* A message of an answer: JSON, or Protobuf. */
static bool
message_parse(Link *link, PbAnswer what, Slice bytes, const JsonNode **root_out)
{
    Buf text = {0};
    if (!link->is_pb) return link_parse(link, bytes, root_out);
    bool good = pb_answer(what, bytes, link->steps, &text) == OK &&
                link_parse(link, buf_slice(&text), root_out);
    buf_free(&text);
    return good;
}

/* Send the requests, read the answer, give out its results. */
static bool
pipeline_end(Talk *talk, JsonWriter *json, Buf *text, bool uses_stored,
             const JsonNode **results_out)
{
    Slice body;
    const JsonNode *root;
    Link *link = &talk->link;
    json_end_array(json);
    json_end_object(json);
    bool good = json_writer_done(json) == OK && post(talk, PB_PIPELINE, text, uses_stored, &body);
    buf_free(text);
    if (!good || !message_parse(link, PB_PIPELINE_RESP, body, &root)) return false;
    baton_take(link, root);
    const JsonNode *results = json_member(root, "results");
    if (results == NULL || results->type != JSON_ARRAY) rt_sim_fail("no results");
    *results_out = results;
    return true;
}

/* The response inside result number `at`, or its error. */
static const JsonNode *
response_of(const JsonNode *results, u32 at, u32 wanted, const char *type, Answer *answer)
{
    Slice text;
    if (results->count != wanted) rt_sim_fail("%u results of %u requests", results->count, wanted);
    const JsonNode *first = results->u.first;
    while (at-- > 0)
        first = first->next;
    const JsonNode *error = json_member(first, "error");
    if (error != NULL) {
        talk__code_take(answer, error, "code");
        return NULL;
    }
    const JsonNode *response = json_member(first, "response");
    if (!json_get_text(json_member(response, "type"), &text) ||
        !slice_equal(text, SLICE(type, strlen(type))))
        rt_sim_fail("the response is of another type");
    return json_member(response, "result");
}

/* ---- stored texts ---- */

/* Store it, unless it is there; another text of that number gives way. */
static bool
http_store(Talk *talk, JsonWriter *json, i32 number, const char *sql)
{
    if (number < 0 || talk->stored[number] == sql) return false;
    talk__request_write(json, "store_sql");
    talk__store_write(json, number, sql);
    json_end_object(json);
    talk->stored[number] = sql;
    return true;
}

static bool
http_ask(Talk *talk, const Ask *ask, Answer *answer)
{
    char tag[TAG_BYTES];
    Buf text = {0};
    JsonWriter json;
    const JsonNode *results;
    talk__tag_next(talk, tag);
    if (talk->link.baton[0] == 0) memset(talk->stored, 0, sizeof(talk->stored));
    pipeline_begin(talk, &json, &text);
    json_key(&json, "requests");
    json_begin_array(&json);
    i32 number = talk__stored_draw(talk);
    u32 before = http_store(talk, &json, number, ask->sql);
    talk__request_write(&json, "execute");
    json_key(&json, "stmt");
    talk__stmt_write(&json, ask, tag, number);
    json_end_object(&json);
    if (!talk->stays) {
        talk__request_write(&json, "close");
        json_end_object(&json);
    }
    if (!pipeline_end(talk, &json, &text, number >= 0, &results)) return false;
    const JsonNode *result = response_of(results, before, before + (talk->stays ? 1 : 2), "execute",
                                         answer);
    if (result != NULL) talk__result_take(answer, result, tag);
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
    if (status < 400) rt_sim_fail("client %u: a bad baton was taken: %s", talk->who, baton);
    return status == 400;
}

/* The next message of a cursor's body: a line, or one behind its length. */
static Slice
entry_next(const Link *link, Slice *body)
{
    u64 bytes = 0;
    size_t end = 0;
    if (link->is_pb) {
        if (!pb_varint_take(body, &bytes) || bytes > body->bytes) rt_sim_fail("half an entry");
    } else {
        const u8 *newline = memchr(body->p, '\n', body->bytes);
        if (newline == NULL) rt_sim_fail("the last line has no end");
        bytes = (u64)(newline - body->p);
        end = 1;
    }
    Slice entry = SLICE(body->p, bytes);
    *body = SLICE(body->p + bytes + end, body->bytes - bytes - end);
    return entry;
}

/* The body of a cursor. */
static bool
entries_take(Talk *talk, Slice body, const char *tag, Answer *answer)
{
    bool first = true;
    *answer = (Answer){0};
    while (body.bytes > 0) {
        const JsonNode *entry;
        Slice bytes = entry_next(&talk->link, &body);
        PbAnswer what = first ? PB_CURSOR_RESP : PB_CURSOR_ENTRY;
        if (!message_parse(&talk->link, what, bytes, &entry)) return false;
        if (first)
            baton_take(&talk->link, entry);
        else
            talk__entry_take(entry, tag, answer);
        first = false;
    }
    if (!answer->good && answer->code[0] == 0) rt_sim_fail("a cursor's step has no end");
    return true;
}

static bool
http_cursor(Talk *talk, const Ask *ask, const char *tag, Answer *answer)
{
    Slice body;
    Buf text = {0};
    JsonWriter json;
    pipeline_begin(talk, &json, &text);
    talk__steps_of_one(&json, ask, tag);
    json_end_object(&json);
    bool good = json_writer_done(&json) == OK && post(talk, PB_CURSOR, &text, false, &body);
    buf_free(&text);
    return good && entries_take(talk, body, tag, answer);
}

/* ---- batches ---- */

static bool
http_batch(Talk *talk, const Ask *asks, u32 count, const char *tag, Answer *answer)
{
    Buf text = {0};
    JsonWriter json;
    const JsonNode *results;
    pipeline_begin(talk, &json, &text);
    json_key(&json, "requests");
    json_begin_array(&json);
    talk__request_write(&json, "batch");
    talk__batch_write(&json, asks, count, tag);
    json_end_object(&json);
    talk__request_write(&json, "close");
    json_end_object(&json);
    talk->link.steps = count + 3;
    if (!pipeline_end(talk, &json, &text, false, &results)) return false;
    const JsonNode *result = response_of(results, 0, 2, "batch", answer);
    if (result != NULL) talk__batch_take(result, count, tag, answer);
    return true;
}

/* ---- all of them ---- */

bool
talk_send(Talk *talk, u32 lane, const Ask *ask)
{
    ASSERT(talk->link.kind == LINK_WS);
    return talk__ws_send(talk, lane, ask);
}

bool
talk_wait(Talk *talk, u32 lane, Answer *answer)
{
    if (!talk__ws_wait(talk, lane)) return false;
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
    talk__tag_next(talk, tag);
    if (talk->link.kind == LINK_HTTP) return http_batch(talk, asks, count, tag, answer);
    return talk__ws_batch(talk, lane, asks, count, tag, answer);
}

bool
talk_cursor(Talk *talk, u32 lane, const Ask *ask, Answer *answer)
{
    char tag[TAG_BYTES];
    talk__tag_next(talk, tag);
    if (talk->link.kind == LINK_HTTP) return http_cursor(talk, ask, tag, answer);
    return talk__ws_cursor(talk, lane, ask, tag, answer);
}

bool
talk_open(Talk *talk, LinkKind kind, const Way *way, u64 patience_ns)
{
    for (u32 i = 0; i <= LANES; i++)
        talk->lane[i] = (Lane){0};
    memset(talk->stored, 0, sizeof(talk->stored));
    talk->stays = false;
    return link_open(&talk->link, kind, way, patience_ns);
}

void
talk_close(Talk *talk)
{
    link_close(&talk->link);
}
