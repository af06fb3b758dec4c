/*
 * hrana_fuzz.c -- any bytes as Hrana messages, in both encodings.
 *
 * Checked: no crash, no read beyond the end, and what was decoded can be checked and resolved.  The
 * first byte chooses the kind of message.
 */
#include "server/hrana/hrana.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

static void
use(HranaRequest *request, Arena *arena)
{
    HranaError error = {0};
    HranaStore store = {0};
    for (u32 version = 1; version <= 3; version++) {
        Err err = hrana__check_request(request, version, &error);
        if (err != OK || version < 3) continue;
        err = hrana__resolve(request, &store, arena, &error);
        (void)err;
    }
}

int
LLVMFuzzerTestOneInput(const u8 *data, size_t bytes)
{
    if (bytes == 0) return 0;
    Slice text = SLICE(data + 1, bytes - 1);
    Arena arena;
    HranaError error = {0};
    HranaMsg msg;
    HranaBody body = {0};
    Err err = OK;
    arena_init(&arena, NULL);
    switch (data[0] % 6) {
    case 0: err = hrana__json_msg(text, &arena, &msg, &error); break;
    case 1: err = hrana__pb_msg(text, &arena, &msg, &error); break;
    case 2: err = hrana__json_pipeline(text, &arena, &body, &error); break;
    case 3: err = hrana__pb_pipeline(text, &arena, &body, &error); break;
    case 4: err = hrana__json_cursor(text, &arena, &body, &error); break;
    default: err = hrana__pb_cursor(text, &arena, &body, &error); break;
    }
    if (err == OK) {
        if (data[0] % 6 < 2 && !msg.is_hello) use(&msg.request, &arena);
        for (u32 i = 0; i < body.request_count; i++)
            use(&body.request[i], &arena);
        if (data[0] % 6 >= 4) err = hrana__check_batch(&body.batch, 3, &error);
    }
    arena_free(&arena);
    return 0;
}
