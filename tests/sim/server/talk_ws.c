/*
 * talk_ws.c -- Hrana over a WebSocket: lanes that interleave, stored texts, cursors.
 */
#include <stdio.h>
#include <string.h>

#include "rt/sim/sim.h"
#include "talk__json.h"

/* ---- WebSocket ---- */

/* A request; `lane` LANES: not of a stream. */
static void
ws_begin(Talk *talk, u32 lane, JsonWriter *json, Buf *text, const char *type)
{
    /* Every lane counts for itself, and ids are used again at once, as clients do. */
    talk->lane[lane].request = 1 + lane * 1000 + (talk->next_request++ % 3);
    json_writer_init(json, text);
    talk__request_write(json, "request");
    json_key(json, "request_id");
    json_write_int(json, talk->lane[lane].request);
    json_key(json, "request");
    talk__request_write(json, type);
    if (lane == LANES) return;
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
    for (u32 i = 0; i <= LANES; i++) {
        Lane *lane = &talk->lane[i];
        if (lane->request != id) continue;
        const JsonNode *error = json_member(root, "error");
        lane->request = 0;
        *lane_out = lane;
        *response_out = json_member(root, "response");
        lane->answer = (Answer){.good = error == NULL};
        if (error != NULL) talk__code_take(&lane->answer, error, "code");
        return true;
    }
    rt_sim_fail("an answer that nobody waits for: %lld", (long long)id);
}

/* Until the lane has its answer, whose response is *response_out; the others' are kept. */
static bool
ws_wait_raw(Talk *talk, u32 lane, const JsonNode **response_out)
{
    while (talk->lane[lane].request != 0) {
        Lane *which;
        if (!ws_take(talk, response_out, &which)) return false;
        if (which->answer.good && which->tag[0] != 0)
            talk__result_take(&which->answer, json_member(*response_out, "result"), which->tag);
    }
    return true;
}

bool
talk__ws_wait(Talk *talk, u32 lane)
{
    const JsonNode *response = NULL;
    return ws_wait_raw(talk, lane, &response);
}

static bool
ws_lane_open(Talk *talk, u32 lane)
{
    Buf text = {0};
    JsonWriter json;
    ws_begin(talk, lane, &json, &text, "open_stream");
    talk->lane[lane].tag[0] = 0;
    if (!ws_end(talk, &json, &text) || !talk__ws_wait(talk, lane)) return false;
    talk->lane[lane].is_open = talk->lane[lane].answer.good;
    return talk->lane[lane].is_open;
}

/* A request of the whole socket.  False: over, or (never while it is calm) it failed. */
static bool
ws_socket_ask(Talk *talk, const char *type, i32 number, const char *sql)
{
    Buf text = {0};
    JsonWriter json;
    if (!talk__ws_wait(talk, LANES)) return false;
    ws_begin(talk, LANES, &json, &text, type);
    talk->lane[LANES].tag[0] = 0;
    talk__store_write(&json, number, sql);
    if (!ws_end(talk, &json, &text)) return false;
    if (talk->is_calm) return true;
    return talk__ws_wait(talk, LANES) && talk->lane[LANES].answer.good;
}

/* A text is known to all streams of the socket; its number must be free. */
static bool
ws_store(Talk *talk, i32 number, const char *sql)
{
    if (number < 0 || talk->stored[number] == sql) return true;
    if (talk->stored[number] != NULL && !ws_socket_ask(talk, "close_sql", number, NULL))
        return false;
    talk->stored[number] = sql;
    return ws_socket_ask(talk, "store_sql", number, sql);
}

/* ---- cursors on a WebSocket ---- */

static bool
ws_cursor_tell(Talk *talk, u32 lane, const char *type, u32 most, const JsonNode **response_out)
{
    Buf text = {0};
    JsonWriter json;
    ws_begin(talk, LANES, &json, &text, type);
    talk->lane[LANES].tag[0] = 0;
    json_key(&json, "cursor_id");
    json_write_int(&json, lane);
    if (most > 0) {
        json_key(&json, "max_count");
        json_write_int(&json, most);
    }
    return ws_end(talk, &json, &text) && ws_wait_raw(talk, LANES, response_out);
}

/* Entries until there are no more; true also when the answer is an error. */
static bool
ws_cursor_fetch(Talk *talk, u32 lane, const char *tag, Answer *answer)
{
    bool done = false;
    *answer = (Answer){0};
    while (!done) {
        const JsonNode *response;
        u32 most = 1 + (u32)rt_sim_draw(5);
        if (!ws_cursor_tell(talk, lane, "fetch_cursor", most, &response)) return false;
        if (!talk->lane[LANES].answer.good) {
            *answer = talk->lane[LANES].answer;
            return true;
        }
        const JsonNode *entries = json_member(response, "entries");
        if (entries == NULL || entries->type != JSON_ARRAY || entries->count > most)
            rt_sim_fail("a fetch gave no entries, or too many");
        for (const JsonNode *entry = entries->u.first; entry != NULL; entry = entry->next)
            talk__entry_take(entry, tag, answer);
        if (!json_get_bool(json_member(response, "done"), &done)) rt_sim_fail("done or not?");
    }
    if (!answer->good && answer->code[0] == 0) rt_sim_fail("a cursor's step has no end");
    return true;
}

bool
talk__ws_cursor(Talk *talk, u32 lane, const Ask *ask, const char *tag, Answer *answer)
{
    Buf text = {0};
    JsonWriter json;
    const JsonNode *response;
    Lane *from = &talk->lane[lane];
    if (!from->is_open && !ws_lane_open(talk, lane)) return false;
    if (!talk__ws_wait(talk, LANES)) return false;
    ws_begin(talk, lane, &json, &text, "open_cursor");
    from->tag[0] = 0;
    json_key(&json, "cursor_id");
    json_write_int(&json, lane);
    talk__steps_of_one(&json, ask, tag);
    if (!ws_end(talk, &json, &text) || !talk__ws_wait(talk, lane)) return false;
    *answer = from->answer;
    if (answer->good && !ws_cursor_fetch(talk, lane, tag, answer)) return false;
    return ws_cursor_tell(talk, lane, "close_cursor", 0, &response) &&
           talk->lane[LANES].answer.good;
}

bool
talk__ws_batch(Talk *talk, u32 lane, const Ask *asks, u32 count, const char *tag, Answer *answer)
{
    Buf text = {0};
    JsonWriter json;
    Lane *which;
    const JsonNode *response;
    if (!talk->lane[lane].is_open && !ws_lane_open(talk, lane)) return false;
    if (!talk__ws_wait(talk, LANES)) return false;
    ws_begin(talk, lane, &json, &text, "batch");
    talk__batch_write(&json, asks, count, tag);
    talk->lane[lane].tag[0] = 0;
    talk->link.steps = count + 3;
    if (!ws_end(talk, &json, &text) || !ws_take(talk, &response, &which)) return false;
    *answer = which->answer;
    if (answer->good) talk__batch_take(json_member(response, "result"), count, tag, answer);
    return true;
}

/* ---- statements ---- */

bool
talk__ws_send(Talk *talk, u32 lane, const Ask *ask)
{
    Buf text = {0};
    JsonWriter json;
    Lane *to = &talk->lane[lane];
    ASSERT(talk->link.kind == LINK_WS && to->request == 0);
    i32 number = talk__stored_draw(talk);
    if (!to->is_open && !ws_lane_open(talk, lane)) return false;
    if (!ws_store(talk, number, ask->sql)) return false;
    talk__tag_next(talk, to->tag);
    ws_begin(talk, lane, &json, &text, "execute");
    json_key(&json, "stmt");
    talk__stmt_write(&json, ask, to->tag, number);
    return ws_end(talk, &json, &text);
}
