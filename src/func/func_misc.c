/*
 * func_misc.c -- types, NULL handling, literals, and what only the session knows.
 */
#include "func/func_private.h"
#include "value/number.h"

/* ---- types and choices ---- */

static Err
run_typeof(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)call;
    (void)argc;
    const char *name = cell_type_name(argv);
    *result_out = cell_text(name, strlen(name));
    return OK;
}

static Err
run_subtype(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)call;
    (void)argc;
    *result_out = cell_int(argv->subtype);
    return OK;
}

static Err
run_first_not_null(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)call;
    for (u32 i = 0; i < argc; i++) {
        if (argv[i].type == CELL_NULL) continue;
        *result_out = argv[i];
        return OK;
    }
    return OK;
}

/* iif(condition, value, [condition, value ...] [else]) */
static Err
run_iif(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)call;
    u32 i = 0;
    for (; i + 1 < argc; i += 2) {
        if (cell_truth(&argv[i]) != TRUTH_TRUE) continue;
        *result_out = argv[i + 1];
        return OK;
    }
    if (i < argc) *result_out = argv[i];
    return OK;
}

/* likely() and its kin: the value itself. */
static Err
run_same(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)call;
    (void)argc;
    *result_out = argv[0];
    return OK;
}

static Err
run_nullif(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (cell_compare(&argv[0], &argv[1], call->collation) != 0) *result_out = argv[0];
    return OK;
}

/* The least (`want` 1) or greatest (-1) argument, the first or the last among equals as SQLite
   picks it; NULL if any is. */
static Err
pick(FuncCall *call, u32 argc, const Cell *argv, bool greatest, Cell *result_out)
{
    u32 best = 0;
    if (argv[0].type == CELL_NULL) return OK;
    for (u32 i = 1; i < argc; i++) {
        if (argv[i].type == CELL_NULL) return OK;
        int order = cell_compare(&argv[best], &argv[i], call->collation);
        if (greatest ? order < 0 : order >= 0) best = i;
    }
    *result_out = argv[best];
    return OK;
}

static Err
run_min(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    return pick(call, argc, argv, false, result_out);
}
static Err
run_max(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    return pick(call, argc, argv, true, result_out);
}

/* ---- literals ---- */

static Err
append_quoted_blob(Buf *out, const Cell *cell)
{
    static const char digits[] = "0123456789ABCDEF";
    Err err = buf_reserve(out, (size_t)cell->bytes * 2 + 3);
    if (err != OK) return err;
    u8 *p = out->p + out->bytes;
    *p++ = 'X';
    *p++ = '\'';
    for (u32 i = 0; i < cell->bytes; i++) {
        u8 c = cell->flags & CELL_ZEROBLOB ? 0 : cell->u.p[i];
        *p++ = (u8)digits[c >> 4];
        *p++ = (u8)digits[c & 15];
    }
    *p++ = '\'';
    out->bytes = (size_t)(p - out->p);
    return OK;
}

static Err
append_quoted_text(Buf *out, Slice text)
{
    Err err = buf_append_byte(out, '\'');
    const u8 *p = text.p, *end = p + text.bytes;
    while (err == OK && p < end) {
        const u8 *quote = memchr(p, '\'', (size_t)(end - p));
        const u8 *stop = quote == NULL ? end : quote + 1;
        err = buf_append(out, p, (size_t)(stop - p));
        if (err == OK && quote != NULL) err = buf_append_byte(out, '\'');
        p = stop;
    }
    return err != OK ? err : buf_append_byte(out, '\'');
}

Err
func_append_quoted(Buf *out, const Cell *cell)
{
    char text[NUMBER_TEXT_BYTES];
    switch (cell->type) {
    case CELL_NULL: return buf_append_text(out, "NULL");
    case CELL_INT: return buf_append(out, text, number_put_int(text, cell->u.i));
    case CELL_REAL:
        if (cell->u.r - cell->u.r != 0.0) {
            return buf_append_text(out, cell->u.r > 0 ? "9.0e+999" : "-9.0e+999");
        }
        return buf_append(out, text, number_put_real(text, cell->u.r));
    case CELL_TEXT: return append_quoted_text(out, func__until_nul(SLICE(cell->u.p, cell->bytes)));
    default: return append_quoted_blob(out, cell);
    }
}

static bool
has_control(Slice text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.p[i] <= 0x1F) return true;
    }
    return false;
}

/* unistr('...') with control characters and backslashes escaped. */
static Err
append_unistr(Buf *out, Slice text)
{
    static const char digits[] = "0123456789abcdef";
    Err err = buf_append_text(out, "unistr('");
    for (size_t i = 0; i < text.bytes && err == OK; i++) {
        u8 c = text.p[i];
        u8 escape[6] = {'\\', 'u', '0', '0', c >= 0x10 ? '1' : '0', (u8)digits[c & 15]};
        if (c <= 0x1F) {
            err = buf_append(out, escape, 6);
            continue;
        }
        if (c == '\\' || c == '\'') err = buf_append_byte(out, c);
        if (err == OK) err = buf_append_byte(out, c);
    }
    return err != OK ? err : buf_append_text(out, "')");
}

static Err
quote(FuncCall *call, const Cell *cell, bool escapes, Cell *result_out)
{
    Buf out = {0};
    Slice text = SLICE_NONE;
    if (cell->type == CELL_TEXT) text = func__until_nul(SLICE(cell->u.p, cell->bytes));
    Err err = escapes && has_control(text) ? append_unistr(&out, text)
                                           : func_append_quoted(&out, cell);
    if (err == OK) err = func__result_text(call, out.p, out.bytes, result_out);
    buf_free(&out);
    return err;
}

static Err
run_quote(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    return quote(call, argv, false, result_out);
}
static Err
run_unistr_quote(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    return quote(call, argv, true, result_out);
}

/* ---- made values ---- */

static Err
run_zeroblob(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    i64 bytes = cell_to_int(argv);
    if (bytes < 0) bytes = 0;
    Err err = func__check_length(call, (u64)bytes);
    if (err != OK) return err;
    *result_out = (Cell){.type = CELL_BLOB, .flags = CELL_ZEROBLOB, .bytes = (u32)bytes};
    return OK;
}

static Err
no_session(FuncCall *call)
{
    return err_set(call->msg, ERR_MISUSE, "%s() needs a session", call->def->name);
}

static Err
run_random(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    (void)argv;
    if (call->env == NULL || call->env->random == NULL) return no_session(call);
    i64 r;
    call->env->random(call->env->arg, &r, sizeof(r));
    /* Never the smallest integer, so that abs(random()) works. */
    *result_out = cell_int(r < 0 ? -(r & I64_MAX) : r);
    return OK;
}

static Err
run_randomblob(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (call->env == NULL || call->env->random == NULL) return no_session(call);
    i64 bytes = cell_to_int(argv);
    u8 *room;
    if (bytes < 1) bytes = 1;
    Err err = func__result_room(call, (u64)bytes, &room);
    if (err != OK) return err;
    call->env->random(call->env->arg, room, (size_t)bytes);
    *result_out = cell_blob(room, (size_t)bytes);
    return OK;
}

/* ---- what the session knows ---- */

static Err
run_changes(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    (void)argv;
    if (call->env == NULL || call->env->changes == NULL) return no_session(call);
    *result_out = cell_int(call->env->changes(call->env->arg));
    return OK;
}

static Err
run_total_changes(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    (void)argv;
    if (call->env == NULL || call->env->total_changes == NULL) return no_session(call);
    *result_out = cell_int(call->env->total_changes(call->env->arg));
    return OK;
}

static Err
run_last_insert_rowid(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    (void)argv;
    if (call->env == NULL || call->env->last_insert_rowid == NULL) return no_session(call);
    *result_out = cell_int(call->env->last_insert_rowid(call->env->arg));
    return OK;
}

static void
set_constant(Cell *result_out, const char *text)
{
    *result_out = cell_text(text, strlen(text));
    result_out->flags = CELL_TERMINATED;
}

static Err
run_version(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)call;
    (void)argc;
    (void)argv;
    set_constant(result_out, FUNC_SQLITE_VERSION);
    return OK;
}

static Err
run_source_id(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)call;
    (void)argc;
    (void)argv;
    set_constant(result_out, FUNC_SOURCE_ID);
    return OK;
}

static Err
run_option_get(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)call;
    (void)argc;
    i64 n = (i32)cell_to_int(argv);
    const char *option = n < 0 ? NULL : func_compile_option((u32)n);
    if (option != NULL) set_constant(result_out, option);
    return OK;
}

static Err
run_option_used(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (argv->type == CELL_NULL) return OK;
    Slice name;
    Err err = func__c_text_arg(call, argv, &name);
    if (err == OK) *result_out = cell_int(func_compile_option_used(name));
    return err;
}

#define SCALAR(n, low, high, f, fn)                                                      \
    {                                                                                    \
        .name = n, .argc_min = low, .argc_max = high, .kind = FUNC_SCALAR, .flags = (f), \
        .scalar = fn                                                                     \
    }
/* MATCH means what a virtual table makes of it. */
static Err
run_match(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    (void)argv;
    (void)result_out;
    return err_set(call->msg, ERR_SQL, "unable to use function MATCH in the requested context");
}

#define PURE    FUNC_INNOCUOUS
#define INLINED (FUNC_INNOCUOUS | FUNC_INLINE)

static const FuncDef DEFS[] = {
    SCALAR("typeof", 1, 1, PURE, run_typeof),
    SCALAR("subtype", 1, 1, PURE | FUNC_SUBTYPE, run_subtype),
    SCALAR("coalesce", 2, -1, INLINED | FUNC_SUBTYPE | FUNC_RESULT_SUBTYPE, run_first_not_null),
    SCALAR("ifnull", 2, 2, INLINED | FUNC_SUBTYPE | FUNC_RESULT_SUBTYPE, run_first_not_null),
    SCALAR("iif", 2, -1, INLINED | FUNC_SUBTYPE | FUNC_RESULT_SUBTYPE, run_iif),
    SCALAR("if", 2, -1, INLINED | FUNC_SUBTYPE | FUNC_RESULT_SUBTYPE, run_iif),
    SCALAR("likely", 1, 1, INLINED | FUNC_SUBTYPE | FUNC_RESULT_SUBTYPE, run_same),
    SCALAR("unlikely", 1, 1, INLINED | FUNC_SUBTYPE | FUNC_RESULT_SUBTYPE, run_same),
    SCALAR("likelihood", 2, 2, INLINED | FUNC_SUBTYPE | FUNC_RESULT_SUBTYPE, run_same),
    SCALAR("nullif", 2, 2, PURE | FUNC_COLLATES, run_nullif),
    SCALAR("min", 2, -1, PURE | FUNC_COLLATES, run_min),
    SCALAR("max", 2, -1, PURE | FUNC_COLLATES, run_max),
    SCALAR("quote", 1, 1, PURE, run_quote),
    SCALAR("unistr_quote", 1, 1, PURE, run_unistr_quote),
    SCALAR("zeroblob", 1, 1, PURE, run_zeroblob),
    SCALAR("random", 0, 0, PURE | FUNC_VOLATILE, run_random),
    SCALAR("randomblob", 1, 1, PURE | FUNC_VOLATILE, run_randomblob),
    SCALAR("changes", 0, 0, PURE | FUNC_VOLATILE, run_changes),
    SCALAR("total_changes", 0, 0, PURE | FUNC_VOLATILE, run_total_changes),
    SCALAR("last_insert_rowid", 0, 0, PURE | FUNC_VOLATILE, run_last_insert_rowid),
    SCALAR("match", 2, 2, FUNC_INNOCUOUS | FUNC_FALLIBLE, run_match),
    SCALAR("sqlite_version", 0, 0, PURE | FUNC_SLOW_CHANGE, run_version),
    SCALAR("sqlite_source_id", 0, 0, PURE | FUNC_SLOW_CHANGE, run_source_id),
    SCALAR("sqlite_compileoption_get", 1, 1, PURE | FUNC_SLOW_CHANGE, run_option_get),
    SCALAR("sqlite_compileoption_used", 1, 1, PURE | FUNC_SLOW_CHANGE, run_option_used),
};

FUNC_FAMILY(func__misc, DEFS);
