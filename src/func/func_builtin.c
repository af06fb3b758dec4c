/*
 * func_builtin.c -- the families put together; helpers of all functions; compile options.
 */
#include "func/func_private.h"

static const FuncFamily *const FAMILIES[] = {
    &func__text, &func__like_family, &func__format_family, &func__misc,      &func__math,
    &func__date, &func__json,        &func__json_group,    &func__aggregate, &func__window,
};

Err
func_builtin_init(FuncTable *table_out)
{
    *table_out = (FuncTable){0};
    u32 count = 0;
    for (u32 i = 0; i < COUNT_OF(FAMILIES); i++) {
        count += FAMILIES[i]->count;
    }
    const FuncDef **defs = MEM_NEW_ARRAY(const FuncDef *, count);
    if (defs == NULL) return ERR_NOMEM;
    u32 at = 0;
    for (u32 i = 0; i < COUNT_OF(FAMILIES); i++) {
        for (u32 k = 0; k < FAMILIES[i]->count; k++) {
            defs[at++] = &FAMILIES[i]->defs[k];
        }
    }
    Err err = func_table_init(table_out, NULL, defs, count);
    if (err != OK) {
        mem_free(defs);
        *table_out = (FuncTable){0};
    }
    return err;
}

void
func_builtin_free(FuncTable *table)
{
    mem_free((void *)(uintptr_t)table->defs); /* Allocated by func_builtin_init. */
    func_table_free(table);
    table->defs = NULL;
}

const TableFunc *
func_builtin_table_func(Slice name)
{
    for (u32 i = 0; i < func__json_table_count; i++) {
        const TableFunc *func = &func__json_tables[i];
        if (slice_equal_nocase(name, SLICE(func->name, strlen(func->name)))) return func;
    }
    return slice_equal_nocase(name, SLICE_LITERAL("generate_series")) ? &func__series : NULL;
}

/* ---- results ---- */

Err
func__result_room(FuncCall *call, u64 bytes, u8 **room_out)
{
    Err err = func__check_length(call, bytes);
    if (err != OK) return err;
    *room_out = arena_bytes(call->arena, (size_t)bytes + 1);
    return *room_out == NULL ? ERR_NOMEM : OK;
}

void
func__result_set(u8 *room, size_t bytes, Cell *result_out)
{
    room[bytes] = 0;
    *result_out = cell_text(room, bytes);
    result_out->flags = CELL_TERMINATED;
}

Err
func__result_text(FuncCall *call, const void *p, size_t bytes, Cell *result_out)
{
    u8 *room;
    Err err = func__result_room(call, bytes, &room);
    if (err != OK) return err;
    if (bytes > 0) memcpy(room, p, bytes);
    func__result_set(room, bytes, result_out);
    return OK;
}

i32
func__hex_digit(u8 c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* ---- compile options ---- */

/* Only what is true of this engine, in SQLite's words and order. */
static const char *const OPTIONS[] = {
    "ENABLE_COLUMN_METADATA",
    "ENABLE_MATH_FUNCTIONS",
    "ENABLE_UPDATE_DELETE_LIMIT",
    "LIKE_DOESNT_MATCH_BLOBS",
    "MAX_ATTACHED=10",
    "MAX_COLUMN=2000",
    "MAX_COMPOUND_SELECT=500",
    "MAX_EXPR_DEPTH=1000",
    "MAX_FUNCTION_ARG=1000",
    "MAX_LENGTH=1000000000",
    "MAX_LIKE_PATTERN_LENGTH=50000",
    "MAX_SQL_LENGTH=1000000000",
    "MAX_TRIGGER_DEPTH=1000",
    "MAX_VARIABLE_NUMBER=32766",
    "THREADSAFE=1",
    "USE_URI",
};

const char *
func_compile_option(u32 n)
{
    return n < COUNT_OF(OPTIONS) ? OPTIONS[n] : NULL;
}

static bool
is_name_byte(u8 c)
{
    return c >= 0x80 || c == '_' || c == '$' || (c >= '0' && c <= '9') ||
           ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

bool
func_compile_option_used(Slice name)
{
    Slice prefix = SLICE_LITERAL("SQLITE_");
    if (name.bytes >= prefix.bytes && slice_equal_nocase(SLICE(name.p, prefix.bytes), prefix)) {
        name = SLICE(name.p + prefix.bytes, name.bytes - prefix.bytes);
    }
    for (u32 i = 0; i < COUNT_OF(OPTIONS); i++) {
        const char *option = OPTIONS[i];
        if (strlen(option) < name.bytes) continue;
        if (!slice_equal_nocase(SLICE(option, name.bytes), name)) continue;
        if (!is_name_byte((u8)option[name.bytes])) return true;
    }
    return false;
}
