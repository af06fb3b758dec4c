/*
 * value_api.c -- sqlite3_value: conversions of one value, kept with it.
 */
#include "capi/capi.h"

void
value__forget(sqlite3_value *value)
{
    value->has_text = false;
    arena_reset(&value->arena);
    if (LIKELY(value->text16 == NULL)) return;
    mem_free(value->text16);
    value->text16 = NULL;
}

void
value__clear(sqlite3_value *value)
{
    if (value->text.p == NULL && value->text16 == NULL && value->arena.chunk == NULL) return;
    buf_free(&value->text);
    mem_free(value->text16);
    arena_free(&value->arena);
    *value = (sqlite3_value){0};
}

const char *
value__text(sqlite3_value *value, int *bytes_out)
{
    *bytes_out = 0;
    if (value == NULL || value->cell.type == CELL_NULL) return NULL;
    const Cell *cell = &value->cell;
    if (cell->type == CELL_TEXT && (cell->flags & CELL_TERMINATED) != 0) {
        *bytes_out = (int)cell->bytes;
        return (const char *)cell->u.p;
    }
    if (!value->has_text) {
        Slice text;
        if (cell_text_bytes(cell, &value->arena, &text) != OK) return NULL;
        buf_clear(&value->text);
        if (buf_append(&value->text, text.p, text.bytes) != OK) return NULL;
        if (buf_append_byte(&value->text, 0) != OK) return NULL;
        value->has_text = true;
    }
    *bytes_out = (int)value->text.bytes - 1;
    return (const char *)value->text.p;
}

int
sqlite3_value_type(sqlite3_value *value)
{
    if (value == NULL || value->cell.type == CELL_NULL || (value->cell.flags & CELL_POINTER) != 0) {
        return SQLITE_NULL;
    }
    return value->cell.type;
}

int
sqlite3_value_numeric_type(sqlite3_value *value)
{
    if (value == NULL) return SQLITE_NULL;
    if (value->cell.type == CELL_TEXT) {
        Cell number = cell_numeric_value(&value->cell);
        if (cell_is_number(&number)) value->cell = number;
    }
    return sqlite3_value_type(value);
}

sqlite3_int64
sqlite3_value_int64(sqlite3_value *value)
{
    return value == NULL ? 0 : cell_to_int(&value->cell);
}

int
sqlite3_value_int(sqlite3_value *value)
{
    return (int)sqlite3_value_int64(value);
}

double
sqlite3_value_double(sqlite3_value *value)
{
    return value == NULL ? 0.0 : cell_to_real(&value->cell);
}

const unsigned char *
sqlite3_value_text(sqlite3_value *value)
{
    int bytes;
    return (const unsigned char *)value__text(value, &bytes);
}

const void *
sqlite3_value_text16(sqlite3_value *value)
{
    int bytes, bytes16;
    const char *text = value__text(value, &bytes);
    if (text == NULL) return NULL;
    if (value->text16 == NULL) value->text16 = capi__to_utf16(text, (size_t)bytes, &bytes16);
    return value->text16;
}

const void *
sqlite3_value_text16le(sqlite3_value *value)
{
    return sqlite3_value_text16(value);
}

const void *
sqlite3_value_text16be(sqlite3_value *value)
{
    u16 *text = (u16 *)(uintptr_t)sqlite3_value_text16(value);
    if (text == NULL) return NULL;
    size_t units = 0;
    while (text[units] != 0)
        units++;
    u16 *swapped = arena_alloc(&value->arena, (units + 1) * sizeof(u16));
    if (swapped == NULL) return NULL;
    for (size_t i = 0; i < units; i++)
        swapped[i] = __builtin_bswap16(text[i]);
    return swapped;
}

const void *
sqlite3_value_blob(sqlite3_value *value)
{
    if (value == NULL || value->cell.type == CELL_NULL) return NULL;
    if (value->cell.type != CELL_BLOB) return sqlite3_value_text(value);
    if (value->cell.bytes == 0) return NULL;
    Slice bytes;
    if (cell_bytes(&value->cell, &value->arena, &bytes) != OK) return NULL;
    return bytes.p;
}

int
sqlite3_value_bytes(sqlite3_value *value)
{
    int bytes;
    if (value == NULL) return 0;
    if (value->cell.type == CELL_BLOB || value->cell.type == CELL_TEXT) {
        return (int)value->cell.bytes;
    }
    value__text(value, &bytes);
    return bytes;
}

int
sqlite3_value_bytes16(sqlite3_value *value)
{
    if (value != NULL && value->cell.type == CELL_BLOB) return (int)(value->cell.bytes & ~1u);
    const u16 *text = sqlite3_value_text16(value);
    int units = 0;
    while (text != NULL && text[units] != 0)
        units++;
    return units * 2;
}

unsigned int
sqlite3_value_subtype(sqlite3_value *value)
{
    return value == NULL ? 0 : value->cell.subtype;
}

int
sqlite3_value_encoding(sqlite3_value *value)
{
    (void)value;
    return SQLITE_UTF8;
}

sqlite3_value *
sqlite3_value_dup(const sqlite3_value *value)
{
    if (value == NULL) return NULL;
    sqlite3_value *copy = MEM_NEW(sqlite3_value);
    if (copy == NULL) return NULL;
    if (cell_copy(&value->cell, &copy->arena, &copy->cell) != OK) {
        mem_free(copy);
        return NULL;
    }
    return copy;
}

void
sqlite3_value_free(sqlite3_value *value)
{
    if (value == NULL) return;
    value__clear(value);
    mem_free(value);
}
