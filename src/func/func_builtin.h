/*
 * func_builtin.h -- all built-in functions, as one table.
 *
 * The definitions are constant; only the index over them is allocated.  COALESCE, IIF, LIKELY and
 * their kin (FUNC_INLINE) have implementations that evaluate every argument, for callers that do
 * not rewrite them.  Functions of kind FUNC_WINDOW that are no aggregates (row_number() ...) have
 * no callbacks: the window operator computes them by name.
 *
 * Order of rows matters to sum(), total() and avg() only in the last digits of reals and in
 * whether an integer sum overflows on its way; they combine, but are not marked FUNC_ORDERED.
 */
#pragma once

#include "value/func.h"

/* The version of SQLite whose behaviour and functions these are. */
#define FUNC_SQLITE_VERSION        "3.54.1"
#define FUNC_SQLITE_VERSION_NUMBER 3054001
/* What sqlite_source_id() says. */
#define FUNC_SOURCE_ID "weft " WEFT_VERSION

/* Errors: ERR_NOMEM.  End with func_builtin_free(). */
MUST_CHECK Err func_builtin_init(FuncTable *table_out);
void func_builtin_free(FuncTable *table);

/* json_each, json_tree, jsonb_each, jsonb_tree, generate_series; NULL for any other name. */
const TableFunc *func_builtin_table_func(Slice name);

/* The nth compile-time option as sqlite_compileoption_get() names it; NULL past the end. */
const char *func_compile_option(u32 n);
/* True for a name with or without the prefix SQLITE_, with or without "=value". */
bool func_compile_option_used(Slice name);

/* LIKE and GLOB as such.  `escape` is a character, or 0 for none. */
bool func_like(Slice pattern, Slice text, u32 escape, bool case_sensitive);
bool func_glob(Slice pattern, Slice text);
/* A value as an SQL literal, appended to `out`: quote().  Errors: ERR_NOMEM. */
MUST_CHECK Err func_append_quoted(Buf *out, const Cell *cell);
