/*
 * func_private.h -- what the files of func/ share: arguments as text, results, families.
 */
#pragma once

#include "func/func_builtin.h"

/* Families: one array a file. */
typedef struct FuncFamily {
    const FuncDef *defs;
    u32 count;
} FuncFamily;

extern const FuncFamily func__text, func__like_family, func__format_family, func__misc, func__math,
    func__date, func__json, func__json_group, func__aggregate, func__window;

/* Functions that yield rows. */
extern const TableFunc *const func__json_tables;
extern const u32 func__json_table_count;
extern const TableFunc func__series;

#define FUNC_FAMILY(name, array) const FuncFamily name = {array, COUNT_OF(array)}

/* Text behind a value, whole; NULL values are the caller's business. */
static inline Err
func__text_arg(FuncCall *call, const Cell *cell, Slice *text_out)
{
    return cell_text_bytes(cell, call->arena, text_out);
}

/* Up to the first NUL, as functions see it that take C strings. */
static inline Slice
func__until_nul(Slice text)
{
    const u8 *nul = text.bytes > 0 ? memchr(text.p, 0, text.bytes) : NULL;
    return nul == NULL ? text : SLICE(text.p, (size_t)(nul - text.p));
}

/* Text of an argument up to its first NUL. */
static inline Err
func__c_text_arg(FuncCall *call, const Cell *cell, Slice *text_out)
{
    Err err = cell_text_bytes(cell, call->arena, text_out);
    *text_out = err == OK ? func__until_nul(*text_out) : SLICE_NONE;
    return err;
}

/* ERR_TOOBIG if a result of `bytes` may not be. */
static inline Err
func__check_length(const FuncCall *call, u64 bytes)
{
    u64 length_max = call->env != NULL && call->env->length_max != 0 ? call->env->length_max
                                                                     : 1000000000;
    return bytes > length_max || bytes > U32_MAX
               ? err_set(call->msg, ERR_TOOBIG, "%s", err_text(ERR_TOOBIG))
               : OK;
}

/* A copy of the bytes as the result. */
MUST_CHECK Err func__result_text(FuncCall *call, const void *p, size_t bytes, Cell *result_out);
/* Room for a text result that the caller fills; checks the limit. */
MUST_CHECK Err func__result_room(FuncCall *call, u64 bytes, u8 **room_out);
/* Make room[0..bytes) the result (a NUL is put behind; room must have been asked for it). */
void func__result_set(u8 *room, size_t bytes, Cell *result_out);

/* The value of a hexadecimal digit, or -1. */
i32 func__hex_digit(u8 c);

/* One character as SQLite reads UTF-8: any number of continuation bytes after a lead byte; a stray
   continuation byte is itself.  p < end. */
static inline u32
func__utf8_read(const u8 **p, const u8 *end)
{
    u32 c = *(*p)++;
    if (c < 0xC0) return c;
    c = c < 0xE0 ? c & 0x1F : c < 0xF0 ? c & 0x0F : c < 0xF8 ? c & 7 : c < 0xFC ? c & 3 : c & 1;
    if ((*p)[-1] >= 0xFE) c = 0;
    while (*p < end && (**p & 0xC0) == 0x80) {
        c = c << 6 | (*(*p)++ & 0x3Fu);
    }
    return c < 0x80 || (c & 0xFFFFF800u) == 0xD800 ? 0xFFFD : c;
}

/* Skip one character: a lead byte takes the continuation bytes behind it. */
static inline const u8 *
func__utf8_skip(const u8 *p, const u8 *end)
{
    if (*p++ >= 0xC0) {
        while (p < end && (*p & 0xC0) == 0x80) {
            p++;
        }
    }
    return p;
}

/* The same, but any byte that is not ASCII takes the continuation bytes behind it: how length()
   and substr() count. */
static inline const u8 *
func__utf8_skip_any(const u8 *p, const u8 *end)
{
    if (*p++ >= 0x80) {
        while (p < end && (*p & 0xC0) == 0x80) {
            p++;
        }
    }
    return p;
}

/* printf's %!.Nf: at most `decimals` (0 to 30) digits after the point, without trailing zeros but
   with at least one.  `p` has room for 350 bytes; returns how many were written. */
size_t func__put_fixed(char *p, f64 r, u32 decimals);

/* printf's %.Nf or %.Ng (precision > 0) of a finite real; `p` as above. */
size_t func__put_real(char *p, f64 r, u8 letter, u32 precision);
