/*
 * run.c -- statements, batches, sequences and descriptions on a seat.
 *
 * A result is written as its rows come, into memory; when something fails the writer goes back to
 * where it was, so a client never sees half a result.
 */
#include "server/hrana/run.h"

#include <stdio.h>
#include <string.h>

#include "rt/time.h"
#include "server/server__conn.h"

#define HOLD_BYTES ((size_t)64 << 10)

static bool
fail_nomem(Fault *fault)
{
    fault__set(fault, 7, "SQLITE_NOMEM", "out of memory");
    return false;
}

/* ---- arguments ---- */

static bool
args_fail(Fault *fault, const char *text)
{
    fault__set(fault, 25, "ARGS_INVALID", "Arguments do not match SQL parameters: %s", text);
    return false;
}

static bool
name_matches(const char *param, Slice name)
{
    size_t bytes = strlen(param);
    if (slice_equal(name, SLICE(param, bytes))) return true;
    return bytes > 1 && param[0] != '?' && slice_equal(name, SLICE(param + 1, bytes - 1));
}

static const Cell *
named_value(const HranaStmt *given, const char *param)
{
    const Cell *found = NULL;
    if (param == NULL) return NULL;
    for (u32 i = 0; i < given->named_count; i++) {
        if (!name_matches(param, given->named[i].name)) continue;
        found = &given->named[i].value;
        if (given->named[i].name.bytes == strlen(param)) break; /* The exact name wins. */
    }
    return found;
}

static bool
bind_args(Seat *seat, Stmt *stmt, const HranaStmt *given, Fault *fault)
{
    bool query_plan;
    u32 count = stmt_param_count(stmt);
    bool explain = stmt_is_explain(stmt, &query_plan);
    if (given->arg_count > 0 && given->named_count > 0) {
        fault__set(fault, 25, "ARGS_BOTH_POSITIONAL_AND_NAMED",
                   "Specifying both positional and named arguments is not supported");
        return false;
    }
    if (given->arg_count > count || given->named_count > count)
        return args_fail(fault, "there are more arguments than parameters");
    for (u32 i = 0; i < count; i++) {
        const char *name = stmt_param_name(stmt, i);
        const Cell *cell = given->named_count > 0 ? named_value(given, name)
                           : i < given->arg_count ? &given->arg[i]
                                                  : NULL;
        if (cell == NULL) {
            char text[96];
            if (explain) continue;
            snprintf(text, sizeof(text), "value for parameter %s not found",
                     name == NULL ? "?" : name);
            return args_fail(fault, text);
        }
        Err err = stmt_bind(stmt, i, cell);
        if (err != OK) {
            seat__fault(seat, err, fault);
            return false;
        }
    }
    return true;
}

bool
hrana__prepare(Seat *seat, const HranaStmt *given, Stmt **stmt_out, bool *read_only_out,
               Fault *fault)
{
    size_t rest = 0;
    Slice sql = seat__begin_text(given->sql.text, read_only_out);
    seat__statement(seat, sql);
    *stmt_out = NULL;
    if (!seat__prepare(seat, sql, stmt_out, &rest, fault)) return false;
    if (*stmt_out == NULL) {
        fault__set(fault, 21, "SQL_NO_STATEMENT", "SQL string does not contain any statement");
        return false;
    }
    bool good = rest == 0;
    if (good && seat__has_lost_transaction(seat, *stmt_out, fault)) {
        seat__release(seat, *stmt_out);
        *stmt_out = NULL;
        return false;
    }
    if (!good)
        fault__set(fault, 21, "SQL_MANY_STATEMENTS", "SQL string contains more than one statement");
    if (good) good = bind_args(seat, *stmt_out, given, fault);
    if (good) return true;
    seat__release(seat, *stmt_out);
    *stmt_out = NULL;
    return false;
}

/* ---- one statement ---- */

/* May the output be as long as it is?  Looked at after each row. */
static bool
room(HranaWriter *writer, size_t start, Fault *fault)
{
    Server *server = writer->server;
    size_t bytes = writer->out->bytes;
    if (writer->err != OK || (!writer->is_pb && writer->json.err != OK)) return fail_nomem(fault);
    if (server == NULL || bytes <= writer->held + HOLD_BYTES) return true;
    if (bytes - start <= server->options.response_bytes_max &&
        server__hold(server, bytes - writer->held)) {
        writer->held = bytes;
        return true;
    }
    fault__set(fault, 18, "RESPONSE_TOO_LARGE", "Response is too large");
    return false;
}

/* Run to the end; rows are written if `want`. */
static bool
rows_write(Seat *seat, Stmt *stmt, bool want, HranaWriter *writer, u64 *rows_out, Fault *fault)
{
    bool row = true, good = true;
    size_t start = writer->out->bytes;
    *rows_out = 0;
    if (!writer->is_pb) json_begin_array(&writer->json);
    while (good && row) {
        good = seat__step(seat, stmt, &row, fault);
        if (!good || !row || !want) continue;
        hrana__write_row(writer, stmt, 2);
        ++*rows_out;
        good = room(writer, start, fault);
    }
    if (good && !writer->is_pb) json_end_array(&writer->json);
    return good;
}

bool
hrana__changes(Seat *seat, const Stmt *stmt, u64 *affected_out, i64 *rowid_out)
{
    bool query_plan;
    StmtKind kind = stmt_kind(stmt);
    bool explain = stmt_is_explain(stmt, &query_plan);
    bool writes = !explain && kind >= STMT_KIND_INSERT && kind <= STMT_KIND_DELETE;
    *affected_out = writes ? (u64)session_changes(seat__session(seat)) : 0;
    *rowid_out = session_last_rowid(seat__session(seat));
    return !explain && kind == STMT_KIND_INSERT;
}

static void
counts_write(HranaWriter *writer, u64 affected, bool has_rowid, i64 rowid)
{
    JsonWriter *json = &writer->json;
    char digits[24];
    if (writer->is_pb) {
        hrana__pb_varint(writer, 3, affected);
        if (has_rowid) hrana__pb_varint(writer, 4, (u64)rowid << 1 ^ (u64)(rowid >> 63));
        return;
    }
    json_key(json, "affected_row_count");
    json_write_int(json, (i64)affected);
    json_key(json, "last_insert_rowid");
    snprintf(digits, sizeof(digits), "%lld", (long long)rowid);
    if (has_rowid)
        json_write_string(json, digits);
    else
        json_write_null(json);
}

/*
 * A writing statement with RETURNING could be left halfway when its rows are too many, and a
 * statement that is left commits.  So outside a transaction it gets one of its own.
 */
bool
hrana__own_begin(Seat *seat, const Stmt *stmt, bool *own_out, Fault *fault)
{
    Session *session = seat__session(seat);
    StmtKind kind = stmt_kind(stmt);
    *own_out = !stmt_is_read_only(stmt) && kind <= STMT_KIND_DELETE &&
               stmt_column_count(stmt) > 0 && session_autocommit(session);
    Err err = *own_out ? session_exec(session, SLICE_LITERAL("BEGIN")) : OK;
    if (err != OK) seat__fault(seat, err, fault);
    return err == OK;
}

bool
hrana__own_end(Seat *seat, bool good, Fault *fault)
{
    Session *session = seat__session(seat);
    Err err = good ? session_exec(session, SLICE_LITERAL("COMMIT")) : OK;
    if (err != OK) seat__fault(seat, err, fault);
    session_rollback(session); /* As a statement it could fail, and the client thinks it is out. */
    return good && err == OK;
}

/* The bound statement's result. */
static bool
result_write(Seat *seat, Stmt *stmt, bool want_rows, HranaWriter *writer, u64 *rows_out,
             Fault *fault)
{
    JsonWriter *json = &writer->json;
    u64 affected;
    i64 rowid;
    if (!writer->is_pb) {
        json_begin_object(json);
        json_key(json, "cols");
    }
    hrana__write_cols(writer, stmt, 1);
    if (!writer->is_pb) json_key(json, "rows");
    if (!rows_write(seat, stmt, want_rows, writer, rows_out, fault)) return false;
    bool has_rowid = hrana__changes(seat, stmt, &affected, &rowid);
    counts_write(writer, affected, has_rowid, rowid);
    if (!writer->is_pb) json_end_object(json);
    return true;
}

bool
hrana__execute(Seat *seat, const HranaStmt *given, HranaWriter *writer, Fault *fault)
{
    Stmt *stmt;
    bool read_only;
    HranaMark mark = hrana__mark(writer);
    u64 started_ns = rt_now_ns(), rows = 0;
    if (!hrana__prepare(seat, given, &stmt, &read_only, fault)) {
        server__count(seat->server, COUNT_ERRORS, 1);
        return false;
    }
    StmtKind kind = stmt_kind(stmt);
    bool own;
    bool good = hrana__own_begin(seat, stmt, &own, fault) &&
                result_write(seat, stmt, given->want_rows, writer, &rows, fault);
    seat__release(seat, stmt);
    if (own) good = hrana__own_end(seat, good, fault);
    if (good && read_only) seat__set_read_only_txn(seat);
    seat__count(seat, kind, started_ns, rows, good ? NULL : fault);
    if (!good) hrana__back(writer, mark);
    return good;
}

/* ---- batches ---- */

bool
hrana__cond(const HranaCond *cond, const u8 *state, Seat *seat)
{
    if (cond == NULL) return true;
    switch ((HranaCondKind)cond->kind) {
    case COND_OK: return state[cond->step] == STEP_OK || PLANT(208);
    case COND_ERROR: return state[cond->step] != STEP_OK;
    case COND_NOT: return !hrana__cond(cond->first, state, seat);
    case COND_AND:
        for (const HranaCond *inner = cond->first; inner != NULL; inner = inner->next)
            if (!hrana__cond(inner, state, seat)) return false;
        return true;
    case COND_OR:
        for (const HranaCond *inner = cond->first; inner != NULL; inner = inner->next)
            if (hrana__cond(inner, state, seat)) return true;
        return false;
    case COND_IS_AUTOCOMMIT: return seat->engine == NULL || session_autocommit(seat__session(seat));
    }
    return false;
}

/* One step's result as an element of step_results. */
static bool
step_run(Seat *seat, const HranaStep *step, u32 at, HranaWriter *writer, Fault *fault)
{
    HranaMark mark = hrana__mark(writer);
    size_t entry = hrana__pb_begin(writer, 1);
    if (!PLANT(216)) hrana__pb_varint(writer, 1, at);
    size_t value = hrana__pb_begin(writer, 2);
    if (!hrana__execute(seat, &step->stmt, writer, fault)) {
        hrana__back(writer, mark);
        if (!writer->is_pb) json_write_null(&writer->json);
        return false;
    }
    hrana__pb_end(writer, value);
    hrana__pb_end(writer, entry);
    return true;
}

static void
errors_write(HranaWriter *writer, const HranaBatch *batch, const u8 *state, const Fault *faults)
{
    if (!writer->is_pb) {
        json_key(&writer->json, "step_errors");
        json_begin_array(&writer->json);
    }
    for (u32 i = 0; i < batch->count; i++) {
        if (state[i] != STEP_FAILED) {
            if (!writer->is_pb) json_write_null(&writer->json);
            continue;
        }
        size_t entry = hrana__pb_begin(writer, 2);
        hrana__pb_varint(writer, 1, i);
        size_t value = hrana__pb_begin(writer, 2);
        hrana__write_error(writer, &faults[i]);
        hrana__pb_end(writer, value);
        hrana__pb_end(writer, entry);
    }
    if (!writer->is_pb) json_end_array(&writer->json);
}

bool
hrana__batch(Seat *seat, const HranaBatch *batch, HranaWriter *writer, Fault *fault)
{
    HranaMark mark = hrana__mark(writer);
    u8 *state = mem_alloc_zeroed(batch->count + 1);
    Fault *faults = MEM_NEW_ARRAY(Fault, batch->count + 1);
    bool good = state != NULL && faults != NULL;
    if (good && !writer->is_pb) {
        json_begin_object(&writer->json);
        json_key(&writer->json, "step_results");
        json_begin_array(&writer->json);
    }
    for (u32 i = 0; good && i < batch->count; i++) {
        if (!hrana__cond(batch->step[i].cond, state, seat)) {
            if (!writer->is_pb) json_write_null(&writer->json);
            continue;
        }
        bool ok = step_run(seat, &batch->step[i], i, writer, &faults[i]);
        state[i] = ok ? STEP_OK : STEP_FAILED;
    }
    if (good) {
        if (!writer->is_pb) json_end_array(&writer->json);
        errors_write(writer, batch, state, faults);
        if (!writer->is_pb) json_end_object(&writer->json);
    }
    for (u32 i = 0; faults != NULL && i < batch->count; i++)
        fault__free(&faults[i]);
    mem_free(faults);
    mem_free(state);
    if (good && writer->err == OK) return true;
    hrana__back(writer, mark);
    return fail_nomem(fault);
}

/* ---- sequence, describe ---- */

static bool
sequence(Seat *seat, Slice sql, Fault *fault)
{
    bool good = seat__ready(seat, fault);
    while (good && sql.bytes > 0) {
        Stmt *stmt = NULL;
        size_t used = 0;
        bool row = true;
        u64 started_ns = rt_now_ns();
        seat__statement(seat, sql);
        Err err = stmt_prepare(seat__session(seat), sql, &stmt, &used);
        if (err != OK) {
            seat__fault(seat, err, fault);
            fault->is_input = true;
            return false;
        }
        sql = SLICE(sql.p + used, sql.bytes - used);
        if (stmt == NULL) {
            if (used == 0) break;
            continue;
        }
        StmtKind kind = stmt_kind(stmt);
        good = !seat__has_lost_transaction(seat, stmt, fault);
        while (good && row)
            good = seat__step(seat, stmt, &row, fault);
        err = stmt_finalize(stmt); /* Its error is in *fault. */
        seat__count(seat, kind, started_ns, 0, good ? NULL : fault);
    }
    return good;
}

static void
params_write(HranaWriter *writer, const Stmt *stmt)
{
    u32 count = stmt == NULL ? 0 : stmt_param_count(stmt);
    JsonWriter *json = &writer->json;
    if (!writer->is_pb) {
        json_key(json, "params");
        json_begin_array(json);
    }
    for (u32 i = 0; i < count; i++) {
        const char *name = stmt_param_name(stmt, i);
        if (writer->is_pb) {
            size_t mark = hrana__pb_begin(writer, 1);
            if (name != NULL) hrana__pb_bytes(writer, 1, SLICE(name, strlen(name)));
            hrana__pb_end(writer, mark);
            continue;
        }
        json_begin_object(json);
        json_key(json, "name");
        if (name != NULL)
            json_write_string(json, name);
        else
            json_write_null(json);
        json_end_object(json);
    }
    if (!writer->is_pb) json_end_array(json);
}

static void
description_write(HranaWriter *writer, const Stmt *stmt)
{
    JsonWriter *json = &writer->json;
    bool query_plan, explain = stmt != NULL && stmt_is_explain(stmt, &query_plan);
    bool read_only = stmt == NULL || stmt_is_read_only(stmt);
    if (!writer->is_pb) json_begin_object(json);
    params_write(writer, stmt);
    if (!writer->is_pb) json_key(json, "cols");
    if (stmt != NULL) {
        hrana__write_cols(writer, stmt, 2);
    } else if (!writer->is_pb) {
        json_begin_array(json);
        json_end_array(json);
    }
    if (writer->is_pb) {
        hrana__pb_varint(writer, 3, explain);
        hrana__pb_varint(writer, 4, read_only);
        return;
    }
    json_key(json, "is_explain");
    json_write_bool(json, explain);
    json_key(json, "is_readonly");
    json_write_bool(json, read_only);
    json_end_object(json);
}

static bool
describe(Seat *seat, Slice sql, HranaWriter *writer, Fault *fault)
{
    Stmt *stmt = NULL;
    size_t rest = 0;
    bool read_only;
    sql = seat__begin_text(sql, &read_only);
    seat__statement(seat, sql);
    if (!seat__prepare(seat, sql, &stmt, &rest, fault)) return false;
    if (rest > 0) {
        seat__release(seat, stmt);
        fault__set(fault, 21, "SQL_MANY_STATEMENTS", "SQL string contains more than one statement");
        return false;
    }
    description_write(writer, stmt);
    seat__release(seat, stmt);
    return true;
}

/* ---- dispatch ---- */

static bool
result_of(Seat *seat, const HranaRequest *request, HranaWriter *writer, Fault *fault)
{
    switch ((HranaKind)request->kind) {
    case HRANA_EXECUTE: return hrana__execute(seat, &request->stmt, writer, fault);
    case HRANA_BATCH: return hrana__batch(seat, &request->batch, writer, fault);
    case HRANA_DESCRIBE: return describe(seat, request->sql.text, writer, fault);
    default: break;
    }
    fault__set(fault, 21, "SQLITE_MISUSE", "not a request for a stream");
    return false;
}

bool
hrana__run(Seat *seat, const HranaRequest *request, HranaWriter *writer, Fault *fault)
{
    HranaMark mark = hrana__mark(writer);
    JsonWriter *json = &writer->json;
    bool good = true;
    if (!writer->is_pb) {
        json_begin_object(json);
        json_key(json, "type");
        json_write_string(json, hrana__kind_names[request->kind]);
    }
    if (request->kind == HRANA_SEQUENCE) {
        good = sequence(seat, request->sql.text, fault);
    } else if (request->kind == HRANA_GET_AUTOCOMMIT) {
        bool autocommit = seat->engine == NULL || session_autocommit(seat__session(seat));
        hrana__pb_varint(writer, 1, autocommit);
        if (!writer->is_pb) {
            json_key(json, "is_autocommit");
            json_write_bool(json, autocommit);
        }
    } else if (request->kind <= HRANA_DESCRIBE && request->kind != HRANA_CLOSE) {
        size_t result = hrana__pb_begin(writer, 1);
        if (!writer->is_pb) json_key(json, "result");
        good = result_of(seat, request, writer, fault);
        if (good) hrana__pb_end(writer, result);
    }
    if (!good) {
        hrana__back(writer, mark);
        return false;
    }
    if (!writer->is_pb) json_end_object(json);
    return true;
}
