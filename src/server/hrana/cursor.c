/*
 * cursor.c -- a batch whose result is taken entry by entry.
 *
 * A statement that only reads is stepped as its rows are asked for; one that writes is run to its
 * end first and its entries are held, so that a slow client holds no locks.
 */
#include <stdio.h>
#include <string.h>

#include "rt/time.h"
#include "server/hrana/run.h"
#include "server/server__conn.h"

Err
hrana__cursor_open(HranaCursor *cursor, Seat *seat, const HranaBatch *batch, bool is_pb,
                   u32 version)
{
    *cursor = (HranaCursor){.seat = seat, .batch = batch};
    hrana__writer_init(&cursor->format, NULL, is_pb, version, NULL);
    cursor->state = mem_alloc_zeroed(batch->count + 1);
    return cursor->state == NULL ? ERR_NOMEM : OK;
}

static void
stmt_leave(HranaCursor *cursor)
{
    if (cursor->stmt != NULL) seat__release(cursor->seat, cursor->stmt);
    cursor->stmt = NULL;
}

void
hrana__cursor_close(HranaCursor *cursor)
{
    stmt_leave(cursor);
    server__release(cursor->seat->server, cursor->budget);
    cursor->budget = 0;
    mem_free(cursor->state);
    cursor->state = NULL;
    buf_free(&cursor->held);
    cursor->done = true;
}

/* ---- entries ---- */

static void
entry_begin(const HranaCursor *cursor, HranaWriter *writer, Buf *out, const char *type)
{
    hrana__writer_init(writer, out, cursor->format.is_pb, cursor->format.version, NULL);
    if (writer->is_pb) return;
    json_begin_object(&writer->json);
    json_key(&writer->json, "type");
    json_write_string(&writer->json, type);
}

static Err
entry_end(HranaWriter *writer)
{
    if (!writer->is_pb) json_end_object(&writer->json);
    return hrana__writer_done(writer);
}

static Err
write_begin(const HranaCursor *cursor, Buf *out)
{
    HranaWriter writer;
    entry_begin(cursor, &writer, out, "step_begin");
    size_t mark = hrana__pb_begin(&writer, 1);
    hrana__pb_varint(&writer, 1, cursor->step);
    if (!writer.is_pb) {
        json_key(&writer.json, "step");
        json_write_int(&writer.json, cursor->step);
        json_key(&writer.json, "cols");
    }
    hrana__write_cols(&writer, cursor->stmt, 2);
    hrana__pb_end(&writer, mark);
    return entry_end(&writer);
}

static Err
write_row(const HranaCursor *cursor, Buf *out)
{
    HranaWriter writer;
    entry_begin(cursor, &writer, out, "row");
    if (!writer.is_pb) json_key(&writer.json, "row");
    hrana__write_row(&writer, cursor->stmt, 4);
    return entry_end(&writer);
}

static Err
write_end(const HranaCursor *cursor, Buf *out)
{
    HranaWriter writer;
    u64 affected;
    i64 rowid;
    char digits[24];
    bool has_rowid = hrana__changes(cursor->seat, cursor->stmt, &affected, &rowid);
    entry_begin(cursor, &writer, out, "step_end");
    size_t mark = hrana__pb_begin(&writer, 2);
    hrana__pb_varint(&writer, 1, affected);
    if (has_rowid) hrana__pb_varint(&writer, 2, (u64)rowid << 1 ^ (u64)(rowid >> 63));
    hrana__pb_end(&writer, mark);
    if (!writer.is_pb) {
        json_key(&writer.json, "affected_row_count");
        json_write_int(&writer.json, (i64)affected);
        json_key(&writer.json, "last_insert_rowid");
        snprintf(digits, sizeof(digits), "%lld", (long long)rowid);
        if (has_rowid)
            json_write_string(&writer.json, digits);
        else
            json_write_null(&writer.json);
    }
    return entry_end(&writer);
}

static Err
write_error(const HranaCursor *cursor, const Fault *fault, Buf *out)
{
    HranaWriter writer;
    entry_begin(cursor, &writer, out, "step_error");
    size_t mark = hrana__pb_begin(&writer, 3);
    hrana__pb_varint(&writer, 1, cursor->step);
    if (!writer.is_pb) {
        json_key(&writer.json, "step");
        json_write_int(&writer.json, cursor->step);
        json_key(&writer.json, "error");
    }
    size_t error = hrana__pb_begin(&writer, 2);
    hrana__write_error(&writer, fault);
    hrana__pb_end(&writer, error);
    hrana__pb_end(&writer, mark);
    return entry_end(&writer);
}

/* ---- steps ---- */

static void
step_done(HranaCursor *cursor, bool good, const Fault *fault)
{
    StmtKind kind = cursor->stmt == NULL ? STMT_KIND_SELECT : stmt_kind(cursor->stmt);
    seat__count(cursor->seat, kind, cursor->started_ns, cursor->rows, good ? NULL : fault);
    stmt_leave(cursor);
    cursor->state[cursor->step] = good ? STEP_OK : STEP_FAILED;
    cursor->step++;
}

/* The next thing of the open statement: a row or its end. */
static Err
advance(HranaCursor *cursor, Buf *out)
{
    Fault fault = {0};
    bool row, want = cursor->batch->step[cursor->step].stmt.want_rows;
    Err err;
    do {
        bool good = seat__step(cursor->seat, cursor->stmt, &row, &fault);
        if (!good) {
            err = write_error(cursor, &fault, out);
            step_done(cursor, false, &fault);
            fault__free(&fault);
            return err;
        }
    } while (row && !want);
    if (row) {
        cursor->rows++;
        return write_row(cursor, out);
    }
    err = write_end(cursor, out);
    step_done(cursor, true, NULL);
    return err;
}

/* Length and bytes of one entry behind those that are held. */
static Err
hold(HranaCursor *cursor, const Buf *entry)
{
    u64 length = entry->bytes;
    Server *server = cursor->seat->server;
    if (cursor->held.bytes > cursor->budget) {
        u64 more = (u64)64 << 10;
        if (cursor->held.bytes > server->options.response_bytes_max || !server__hold(server, more))
            return ERR_TOOBIG;
        cursor->budget += more;
    }
    Err err = buf_append(&cursor->held, &length, sizeof(length));
    return err == OK ? buf_append(&cursor->held, entry->p, entry->bytes) : err;
}

/* The held entries are void: the step failed. */
static Err
held_fail(HranaCursor *cursor, u32 step, const Fault *fault)
{
    Buf entry = {0};
    buf_clear(&cursor->held);
    if (cursor->step == step)
        step_done(cursor, false, fault);
    else
        cursor->state[step] = STEP_FAILED;
    cursor->step = step; /* For the entry. */
    Err err = write_error(cursor, fault, &entry);
    cursor->step = step + 1;
    if (err == OK) err = hold(cursor, &entry);
    buf_free(&entry);
    return err;
}

/* Run a writing statement to its end; its entries are held. */
static Err
run_held(HranaCursor *cursor)
{
    Buf entry = {0};
    Fault fault = {0};
    bool own;
    u32 step = cursor->step;
    buf_clear(&cursor->held);
    cursor->held_at = 0;
    bool good = hrana__own_begin(cursor->seat, cursor->stmt, &own, &fault);
    Err err = good ? write_begin(cursor, &entry) : OK;
    if (good && err == OK) err = hold(cursor, &entry);
    while (good && err == OK && cursor->step == step) {
        buf_clear(&entry);
        err = advance(cursor, &entry);
        if (err == OK) err = hold(cursor, &entry);
    }
    buf_free(&entry);
    if (err == ERR_TOOBIG) {
        fault__set(&fault, 18, "RESPONSE_TOO_LARGE", "Response is too large");
        good = false;
        err = OK;
    }
    if (cursor->step == step) stmt_leave(cursor);
    bool ran = good && err == OK && cursor->state[step] == STEP_OK;
    if (own && !hrana__own_end(cursor->seat, ran, &fault) && ran) good = false;
    if (!good && err == OK) err = held_fail(cursor, step, &fault);
    fault__free(&fault);
    return err;
}

/* Start the step at hand.  *wrote_out: an entry was appended. */
static Err
start(HranaCursor *cursor, Buf *out, bool *wrote_out)
{
    const HranaStep *step = &cursor->batch->step[cursor->step];
    Fault fault = {0};
    bool read_only;
    *wrote_out = false;
    if (!hrana__cond(step->cond, cursor->state, cursor->seat)) {
        cursor->step++;
        return OK;
    }
    cursor->started_ns = rt_now_ns();
    cursor->rows = 0;
    if (!hrana__prepare(cursor->seat, &step->stmt, &cursor->stmt, &read_only, &fault)) {
        Err err = write_error(cursor, &fault, out);
        step_done(cursor, false, &fault);
        fault__free(&fault);
        *wrote_out = true;
        return err;
    }
    if (!stmt_is_read_only(cursor->stmt) || read_only) {
        Err err = run_held(cursor);
        if (read_only) seat__set_read_only_txn(cursor->seat);
        return err;
    }
    *wrote_out = true;
    return write_begin(cursor, out);
}

Err
hrana__cursor_next(HranaCursor *cursor, Buf *out, bool *done_out)
{
    *done_out = false;
    for (;;) {
        if (cursor->held_at < cursor->held.bytes) {
            u64 length;
            memcpy(&length, cursor->held.p + cursor->held_at, sizeof(length));
            cursor->held_at += sizeof(length);
            Err err = buf_append(out, cursor->held.p + cursor->held_at, length);
            cursor->held_at += length;
            return err;
        }
        if (cursor->stmt != NULL) return advance(cursor, out);
        if (cursor->done || cursor->step >= cursor->batch->count) {
            cursor->done = true;
            *done_out = true;
            return OK;
        }
        bool wrote;
        Err err = start(cursor, out, &wrote);
        if (err != OK || wrote) return err;
    }
}
