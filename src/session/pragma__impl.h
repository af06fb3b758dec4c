/*
 * pragma__impl.h -- private to the pragma files: one call of a pragma, and its definition.
 */
#pragma once

#include "session/virtual__impl.h"

typedef struct PragmaCall {
    Stmt *stmt;
    Session *session;
    const AstPragma *ast;
    bool has_value;
    Slice value;
    const struct PragmaDef *def;
} PragmaCall;

typedef Err (*PragmaFn)(PragmaCall *call);

typedef enum PragmaFlags {
    PRAGMA_READS_SCHEMA = 1, /* Needs a transaction and the catalogs. */
    PRAGMA_QUIET_ON_SET = 2, /* With a value: no row. */
    PRAGMA_ARG = 4,          /* As a function it takes an argument ... */
    PRAGMA_SCHEMA = 8,       /* ... and the name of a schema. */
    PRAGMA_NO_FUNC = 16,     /* It is no function: it does something. */
    PRAGMA_WRITES = 32,      /* To the file, in SQLite: always, */
    PRAGMA_SET_WRITES = 64   /* or with a value. */
} PragmaFlags;

typedef struct PragmaDef {
    const char *name;
    PragmaFn fn;
    u32 flags;        /* PragmaFlags */
    i64 number;       /* Fixed answers; settings that are only remembered: before they are set. */
    const char *text; /* The same, as text; and names of header numbers. */
    u8 columns;
    const char *column[8];
} PragmaDef;

static inline Cell
text_cell(const char *text)
{
    return text == NULL ? cell_null() : cell_text(text, strlen(text));
}

/* pragma.c */
Err pragma__one_number(PragmaCall *call, i64 number);
Err pragma__one_text(PragmaCall *call, const char *text);
u32 pragma__database(const PragmaCall *call);
/* Its place among all. */
u32 pragma__number(const PragmaDef *def);

/* pragma_setting.c */
bool pragma__is_true(Slice value);
i64 pragma__value_number(Slice value);
Err pragma__foreign_keys(PragmaCall *call);
Err pragma__recursive_triggers(PragmaCall *call);
Err pragma__defer_foreign_keys(PragmaCall *call);
Err pragma__cache_size(PragmaCall *call);
Err pragma__default_cache_size(PragmaCall *call);
Err pragma__query_only(PragmaCall *call);
Err pragma__ignore_check(PragmaCall *call);
Err pragma__reverse(PragmaCall *call);
Err pragma__case_sensitive_like(PragmaCall *call);
Err pragma__count_changes(PragmaCall *call);
Err pragma__full_column_names(PragmaCall *call);
Err pragma__short_column_names(PragmaCall *call);
Err pragma__writable_schema(PragmaCall *call);
Err pragma__synchronous(PragmaCall *call);
Err pragma__busy_timeout(PragmaCall *call);
Err pragma__journal_mode(PragmaCall *call);
Err pragma__writers(PragmaCall *call);
Err pragma__batch_rows(PragmaCall *call);
Err pragma__memory_budget(PragmaCall *call);
Err pragma__statement_memory(PragmaCall *call);
Err pragma__session_memory(PragmaCall *call);
Err pragma__hard_heap_limit(PragmaCall *call);
Err pragma__plans(PragmaCall *call);
Err pragma__trip_every(PragmaCall *call);
/* Settings without a meaning here, remembered for who reads them. */
Err pragma__kept_flag(PragmaCall *call);
Err pragma__kept_number(PragmaCall *call);
Err pragma__kept_limit(PragmaCall *call);
Err pragma__journal_size_limit(PragmaCall *call);
Err pragma__temp_store(PragmaCall *call);
Err pragma__secure_delete(PragmaCall *call);
Err pragma__cache_spill(PragmaCall *call);
Err pragma__locking_mode(PragmaCall *call);

/* pragma_rows.c */
Err pragma__table_info(PragmaCall *call);
Err pragma__table_list(PragmaCall *call);
Err pragma__index_list(PragmaCall *call);
Err pragma__index_info(PragmaCall *call);
Err pragma__foreign_key_list(PragmaCall *call);
Err pragma__foreign_key_check(PragmaCall *call);
Err pragma__database_list(PragmaCall *call);
Err pragma__collation_list(PragmaCall *call);
Err pragma__compile_options(PragmaCall *call);
Err pragma__function_list(PragmaCall *call);
Err pragma__module_list(PragmaCall *call);
Err pragma__pragma_list(PragmaCall *call);
