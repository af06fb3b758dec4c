/*
 * capi.h -- what the files of the C API share: the objects behind its opaque pointers.
 *
 * Private to capi/.  A call locks the session's mutex, does its work through session.h, and turns
 * Err into an SQLITE_* code.  Codes are extended ones inside; `extended_codes` says whether the
 * caller sees them.
 */
#pragma once

#include "capi_rename.h" /* generated */
#include "rt/word.h"
#include "session/host_module.h"
#include "session/session.h"
#include "sqlite3.h"

#define DB_MAGIC   0x57443364u
#define STMT_MAGIC 0x57533374u

typedef struct CapiTable CapiTable;     /* module_api.c */
typedef struct CapiPointer CapiPointer; /* pointer.h */

struct sqlite3_value {
    Cell cell;
    Arena arena;   /* Texts made by conversion; and the bytes of a dup. */
    bool has_text; /* `text` is of this value. */
    Buf text;      /* Cached NUL-terminated text; a column keeps the room from row to row. */
    void *text16;  /* Cached UTF-16 text. */
};

/* Data of the program's that lives with a connection. */
typedef struct ClientData {
    struct ClientData *next;
    void *pointer;
    void (*destroy)(void *);
    char name[];
} ClientData;

/* A file name with what stands behind it (name_api.c), kept for sqlite3_db_filename. */
typedef struct FileName {
    struct FileName *next;
    sqlite3_filename name;
} FileName;

struct sqlite3 {
    u32 magic;               /* 0: closed (handle.c). */
    sqlite3 *next_free;      /* Of closed ones. */
    sqlite3_stmt *free_stmt; /* Finalized ones, to be used again. */
    Session *session;        /* NULL: opening failed. */
    ErrMsg error;            /* Of opening, and of API calls that never reached the session. */
    RtU32 own_error;         /* 1: `error` is the last one, not the session's. */
    bool extended_codes;
    bool without_mutex; /* sqlite3_db_mutex() has none to give. */
    void *errmsg16;
    int (*busy)(void *, int);
    void *busy_arg;
    int busy_timeout_ms;
    sqlite3_stmt *first;
    unsigned trace_mask;
    int (*trace)(unsigned, void *, void *, void *);
    void *trace_arg;
    void (*trace_v1)(void *, const char *); /* sqlite3_trace */
    int (*authorize)(void *, int, const char *, const char *, const char *, const char *);
    void *authorize_arg;
    int (*progress)(void *);
    void *progress_arg;
    int (*commit)(void *);
    void *commit_arg;
    void (*rollback)(void *);
    void *rollback_arg;
    void (*update)(void *, int, const char *, const char *, sqlite3_int64);
    void *update_arg;
    CapiTable *connecting;     /* A virtual table's constructor at work. */
    int vtab_conflict;         /* Inside of xUpdate: SQLITE_ABORT, ...; else 0. */
    CapiPointer *pointers;     /* Pointer values made by functions. */
    struct HostRegistry *host; /* Functions and collations of the program; NULL: none. */
    bool is_zombie;
    u32 backups;   /* Unfinished ones, from or to it. */
    RtPtr mutex;   /* sqlite3_mutex, made when it is asked for. */
    bool may_load; /* Loadable extensions (which are refused all the same). */
    u32 turned;    /* Settings of sqlite3_db_config that are not as at first. */
    /* What sqlite3_db_status() is to count from, after a reset. */
    u64 hits_before, misses_before, writes_before;
    int fp_digits;
    int (*wal)(void *, sqlite3 *, const char *, int);
    void *wal_arg;
    void *autovacuum_arg;
    void (*autovacuum_destroy)(void *);
    ClientData *client_data;
    FileName *names; /* The first opened is main's. */
    void (*collation_needed)(void *, sqlite3 *, int, const char *);
    void (*collation_needed16)(void *, sqlite3 *, int, const void *);
    void *collation_needed_arg;
    void (*preupdate)(void *, sqlite3 *, int, const char *, const char *, sqlite3_int64,
                      sqlite3_int64);
    void *preupdate_arg;
    struct Preupdate *change;                                 /* Inside of the preupdate hook. */
    void (*profile_v1)(void *, const char *, sqlite3_uint64); /* sqlite3_profile */
    void *profile_arg;
};

struct sqlite3_stmt {
    u32 magic;
    Stmt *stmt;
    sqlite3 *db;
    sqlite3_stmt *next, *previous;
    const StmtRow *row;    /* Where the session keeps the current row. */
    sqlite3_value *column; /* Values of the current row, made on demand. */
    u32 columns;
    bool has_values; /* Some of them have been made. */
    void **name16;   /* Column names in UTF-16. */
    bool is_running;
    CapiPointer *pointers; /* Bound ones. */
    Buf normalized;        /* sqlite3_normalized_sql(), made when it is asked for. */
    u64 began_ns;          /* Traced statements: when the run began; 0: none is running. */
    u32 runs;
};

/* handle.c: handles that may be asked for their magic number also when they are gone.  NULL: out of
   memory.  Of a connection all but its memory has been freed. */
sqlite3 *capi__db_new(void);
void capi__db_free(sqlite3 *db);
/* The session's lock is held. */
sqlite3_stmt *capi__stmt_new(sqlite3 *db);
void capi__stmt_free(sqlite3 *db, sqlite3_stmt *stmt);
/* The process ends: whole lists. */
void capi__free_handles(sqlite3 *db, sqlite3_stmt *stmt);

bool capi__db_ok(const sqlite3 *db);
static ALWAYS_INLINE bool
capi__stmt_ok(const sqlite3_stmt *stmt)
{
    return stmt != NULL && stmt->magic == STMT_MAGIC;
}
/* Code for the caller: extended or cut to its low byte. */
int capi__code(const sqlite3 *db, int extended);
int capi__result(sqlite3 *db, Err err);
static ALWAYS_INLINE int
capi__result_fast(sqlite3 *db, Err err)
{
    if (UNLIKELY(err != OK)) return capi__result(db, err);
    rt_store_relaxed(&db->own_error, 0);
    return SQLITE_OK;
}
/* Record an error that did not come from the session. */
int capi__fail(sqlite3 *db, Err err, const char *format, ...) PRINTF_LIKE(3, 4);
int capi__absent(sqlite3 *db, const char *function);
void capi__log(int code, const char *text);

/* UTF-16 in native byte order.  mem_alloc'd; NULL: out of memory. */
void *capi__to_utf16(const void *text, size_t bytes, int *bytes16_out);
char *capi__from_utf16(const void *text16, int bytes16, size_t *bytes_out);

/* Free the values of all columns. */
void capi__drop_values(sqlite3_stmt *stmt);
/* pointer.c: the pointer bound to a parameter goes; those that functions made go if nothing runs.
 */
void capi__drop_pointer(sqlite3_stmt *stmt, int index);
void capi__end_pointers(sqlite3 *db);

/* Free a closed connection that nothing holds any more. */
void capi__close_zombie(sqlite3 *db);
/* settings_api.c: what a closing connection gives back. */
void capi__free_settings(sqlite3 *db);

/* hooks_api.c: tell the tracer that a statement begins, that it gave a row, that it ended. */
void capi__trace_start(sqlite3_stmt *stmt);
void capi__trace_row(sqlite3_stmt *stmt);
void capi__trace_end(sqlite3_stmt *stmt);
const char *value__text(sqlite3_value *value, int *bytes_out);
/* Forget the value; room for texts is kept. */
void value__forget(sqlite3_value *value);
void value__clear(sqlite3_value *value);
