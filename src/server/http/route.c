/*
 * route.c -- from a complete request to the one who answers it: path, database, trust.
 *
 * Without a token a web page must not reach us: the Host has to be a name of this machine (a page
 * can make its own name point here) and an Origin one of those that were allowed.
 */
#include "server/http/route.h"

#include <stdio.h>
#include <string.h>

#include "server/dump.h"
#include "server/hrana/hrana_http.h"
#include "server/ws/ws.h"

typedef enum Answer {
    ANSWER_ROOT,
    ANSWER_PROBE,
    ANSWER_HEALTH,
    ANSWER_VERSION,
    ANSWER_METRICS,
    ANSWER_DUMP,
    ANSWER_PIPELINE_2,
    ANSWER_PIPELINE_3,
    ANSWER_CURSOR,
    ANSWER_PIPELINE_PB,
    ANSWER_CURSOR_PB,
    ANSWER_EXECUTE_1,
    ANSWER_BATCH_1,
    ANSWER_COUNT
} Answer;

static const struct {
    const char *path;
    u8 answer;
    bool post; /* Else GET and HEAD. */
    bool open; /* Needs no token. */
} routes[] = {
    {"/", ANSWER_ROOT, false, true},
    {"/v1", ANSWER_PROBE, false, true},
    {"/v2", ANSWER_PROBE, false, true},
    {"/v3", ANSWER_PROBE, false, true},
    {"/v3-protobuf", ANSWER_PROBE, false, true},
    {"/health", ANSWER_HEALTH, false, true},
    {"/version", ANSWER_VERSION, false, true},
    {"/metrics", ANSWER_METRICS, false, false},
    {"/dump", ANSWER_DUMP, false, false},
    {"/v2/pipeline", ANSWER_PIPELINE_2, true, false},
    {"/v3/pipeline", ANSWER_PIPELINE_3, true, false},
    {"/v3/cursor", ANSWER_CURSOR, true, false},
    {"/v3-protobuf/pipeline", ANSWER_PIPELINE_PB, true, false},
    {"/v3-protobuf/cursor", ANSWER_CURSOR_PB, true, false},
    {"/v1/execute", ANSWER_EXECUTE_1, true, false},
    {"/v1/batch", ANSWER_BATCH_1, true, false},
};

static bool
is(Slice text, const char *what)
{
    return slice_equal(text, SLICE(what, strlen(what)));
}

/* ---- web pages ---- */

/* False: refused, and answered. */
static bool
origin_judge(Conn *conn)
{
    const ServerOptions *options = &conn->server->options;
    bool has_origin, has_host, needed = auth__needed(conn->server->auth);
    Slice origin = http__header(conn, HEADER_ORIGIN, &has_origin);
    Slice host = http__header(conn, HEADER_HOST, &has_host);
    for (u32 i = 0; has_origin && i < options->origin_count; i++)
        if (is(origin, options->origin[i]) || is(SLICE_LITERAL("*"), options->origin[i]))
            conn->http->cors = true;
    if (needed || options->insecure) return true;
    if (has_host && host.bytes > 0 && !auth__host_is_local(host)) {
        http__reply_error(conn, 403, "HOST_REFUSED",
                          "without a token only names of this machine are served");
        return false;
    }
    if (!has_origin || conn->http->cors) return true;
    http__reply_error(conn, 403, "ORIGIN_REFUSED", "this origin may not use the server");
    return false;
}

static void
preflight(Conn *conn)
{
    char extra[512];
    bool given;
    Slice headers = http__header(conn, HEADER_REQUEST_HEADERS, &given);
    if (!conn->http->cors) {
        http__reply(conn, 403, NULL, SLICE_NONE, NULL);
        return;
    }
    for (size_t i = 0; i < headers.bytes; i++)
        if (headers.p[i] < 32) headers = SLICE_LITERAL("");
    snprintf(extra, sizeof(extra),
             "Access-Control-Allow-Methods: GET, POST\r\nAccess-Control-Max-Age: 600\r\n"
             "Access-Control-Allow-Headers: %.*s\r\n",
             (int)MIN_OF(headers.bytes, (size_t)256), (const char *)headers.p);
    http__reply(conn, 200, NULL, SLICE_NONE, extra);
}

/* ---- which database ---- */

/* The first label of a Host of several labels that is no address. */
static Slice
host_label(Slice host)
{
    const u8 *dot = host.bytes == 0 ? NULL : memchr(host.p, '.', host.bytes);
    if (dot == NULL || host.p[0] == '[') return SLICE_NONE;
    bool digits = true;
    for (const u8 *at = host.p; at < dot; at++)
        digits = digits && *at >= '0' && *at <= '9';
    if (digits) return SLICE_NONE; /* 127.0.0.1 */
    return SLICE(host.p, (size_t)(dot - host.p));
}

Slice
route__database(Conn *conn)
{
    bool given;
    Http *http = conn->http;
    Slice name = http__header(conn, HEADER_NAMESPACE, &given);
    if (conn->server->options.dir == NULL) return SLICE_NONE;
    if (http->path.bytes > 5 && memcmp(http->path.p, "/dev/", 5) == 0) {
        Slice rest = SLICE(http->path.p + 5, http->path.bytes - 5);
        const u8 *slash = memchr(rest.p, '/', rest.bytes);
        return SLICE(rest.p, slash == NULL ? rest.bytes : (size_t)(slash - rest.p));
    }
    if (!given || name.bytes == 0) name = host_label(http__header(conn, HEADER_HOST, NULL));
    return name.bytes == 0 ? SLICE_LITERAL("default") : name;
}

/* The path without /dev/NAME. */
static Slice
local_path(Slice path)
{
    if (path.bytes <= 5 || memcmp(path.p, "/dev/", 5) != 0) return path;
    const u8 *slash = memchr(path.p + 5, '/', path.bytes - 5);
    if (slash == NULL) return SLICE_LITERAL("/");
    return SLICE(slash, path.bytes - (size_t)(slash - path.p));
}

/* ---- answers ---- */

static void
reply_version(Conn *conn)
{
    static const char text[] = "weftd " WEFT_VERSION "\n";
    http__reply_text(conn, 200, text);
}

static void
reply_metrics(Conn *conn)
{
    Buf text = {0};
    if (metrics__write(conn->server, &text) == OK)
        http__reply(conn, 200, "text/plain; version=0.0.4", buf_slice(&text), NULL);
    else
        http__reply_text(conn, 500, "out of memory");
    buf_free(&text);
}

static void
answer(Conn *conn, Answer which, ServedDb *db, SeatRights rights)
{
    switch (which) {
    case ANSWER_ROOT: http__reply_text(conn, 200, "This is weftd, a SQL server.\n"); return;
    case ANSWER_PROBE: http__reply_text(conn, 200, "Hello, this is Hrana.\n"); return;
    case ANSWER_HEALTH: http__reply(conn, 200, NULL, SLICE_NONE, NULL); return;
    case ANSWER_VERSION: reply_version(conn); return;
    case ANSWER_METRICS: reply_metrics(conn); return;
    case ANSWER_DUMP: dump__reply(conn, db, rights); return;
    case ANSWER_PIPELINE_2: hrana__http_pipeline(conn, db, rights, 2, false); return;
    case ANSWER_PIPELINE_3: hrana__http_pipeline(conn, db, rights, 3, false); return;
    case ANSWER_CURSOR: hrana__http_cursor(conn, db, rights, false); return;
    case ANSWER_PIPELINE_PB: hrana__http_pipeline(conn, db, rights, 3, true); return;
    case ANSWER_CURSOR_PB: hrana__http_cursor(conn, db, rights, true); return;
    case ANSWER_EXECUTE_1: hrana__http_v1(conn, db, rights, false); return;
    case ANSWER_BATCH_1: hrana__http_v1(conn, db, rights, true); return;
    case ANSWER_COUNT: break;
    }
    http__reply(conn, 404, NULL, SLICE_NONE, NULL);
}

/* Trust first, then the database; NULL: answered. */
static ServedDb *
db_judge(Conn *conn, SeatRights *rights_out)
{
    bool given;
    Fault fault = {0};
    Slice value = http__header(conn, HEADER_AUTHORIZATION, &given);
    Trust trust = auth__header(conn->server->auth, given, value);
    Slice name = route__database(conn);
    *rights_out = auth__rights(&trust);
    if (trust.result == AUTH_OK && trust.database[0] != 0 && conn->server->options.dir != NULL &&
        !PLANT(215) && !is(name, trust.database)) {
        trust.result = AUTH_ELSEWHERE;
        trust.code = "AUTH_JWT_NOT_ALLOWED";
        trust.text = "the token is for another database";
    }
    if (trust.result != AUTH_OK) {
        int status = trust.result == AUTH_NOMEM ? 500 : trust.result == AUTH_ELSEWHERE ? 403 : 401;
        server__count(conn->server, COUNT_AUTH_FAILED, 1);
        http__reply_error(conn, status, trust.code, trust.text);
        return NULL;
    }
    ServedDb *db = db__find(conn->server, name, &fault);
    if (db != NULL && db__open(db, &fault) != OK) db = NULL;
    if (db == NULL) {
        char text[200];
        Slice words = fault__text(&fault);
        snprintf(text, sizeof(text), "%.*s", (int)MIN_OF(words.bytes, sizeof(text) - 1),
                 (const char *)words.p);
        http__reply_error(conn, 404, "NAMESPACE_DOESNT_EXIST", text);
    }
    fault__free(&fault);
    return db;
}

void
http__route(Conn *conn)
{
    Http *http = conn->http;
    Slice path = local_path(http->path);
    SeatRights rights = {0};
    bool get = http->method == HTTP_GET || http->method == HTTP_HEAD;
    if (!origin_judge(conn)) return;
    if (http->method == HTTP_OPTIONS) {
        preflight(conn);
        return;
    }
    if (http->method == HTTP_GET && http->value[HEADER_UPGRADE].count > 0) {
        ws__accept(conn);
        return;
    }
    if (is(path, "/") && http->method == HTTP_POST) {
        ServedDb *db = db_judge(conn, &rights);
        if (db != NULL) hrana__http_legacy(conn, db, rights);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        if (!is(path, routes[i].path)) continue;
        if (routes[i].post ? http->method != HTTP_POST : !get) {
            http__reply(conn, 405, NULL, SLICE_NONE,
                        routes[i].post ? "Allow: POST\r\n" : "Allow: GET, HEAD\r\n");
            return;
        }
        ServedDb *db = routes[i].open ? NULL : db_judge(conn, &rights);
        if (db != NULL || routes[i].open) answer(conn, (Answer)routes[i].answer, db, rights);
        return;
    }
    http__reply(conn, 404, NULL, SLICE_NONE, NULL);
}
