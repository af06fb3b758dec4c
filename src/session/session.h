/*
 * session.h -- connections and statements: where SQL meets transactions.
 *
 * The layers above (capi, server, shell through weft.h) see a Session (one connection), its Stmts,
 * and errors as Err with a message.  A Database is what the connections of this process to one
 * store share: the store, the catalogs by version.
 *
 * Life of a statement: stmt_prepare() -> stmt_bind() -> stmt_step() ... -> stmt_reset() ->
 * stmt_finalize().  A statement whose schema changed is prepared again by itself.
 *
 * Tasks: one call at a time on a session and its statements; session_lock/unlock do that for
 * callers that cannot promise it.  Calls may park.  session_interrupt() is safe anywhere, any time.
 */
#pragma once

#include "base/base.h"
#include "sql/plan.h"
#include "value/func.h"
#include "value/value.h"

struct RtProcess;

typedef struct Session Session;
typedef struct Stmt Stmt;

typedef struct SessionOptions {
    bool read_only;
    bool create;
    const char
        *beneath;   /* Database files lie directly in this directory; borrowed.  NULL: anywhere. */
    bool in_memory; /* `path` is then only a name; NULL or "": private. */
    bool uris;      /* ATTACH takes "file:..." as a URI. */
    bool share_plans;   /* With other such sessions of the database: none has functions, collations,
                           modules or hooks that differ in what a text means. */
    bool single_writer; /* SQLite's one-writer rules (the drop-in library's default). */
    StoreSync sync;
    StoreLevel level; /* Of transactions that do not name one. */
    u64 busy_timeout_ns;
    u64 pool_bytes;
    u32 page_bytes;
    /* Memory for statements, in bytes; 0: no cap of its own.  Each lies within the next one and
       within the process's; who would pass one gets ERR_NOMEM with a text that names it. */
    u64 statement_bytes_max;
    u64 session_bytes_max;
    u64 database_bytes_max; /* Of all sessions on the main database: the last that is given. */
} SessionOptions;

/* On error nothing is left behind and `msg` says why. */
MUST_CHECK Err session_open(struct RtProcess *process, const char *path,
                            const SessionOptions *options, Session **session_out, ErrMsg *msg);
/* Finalizes nothing: ERR_BUSY "unable to close due to unfinalized statements ..." while statements
   exist.  session_close_zombie() instead waits for the last finalize.  Rolls back. */
MUST_CHECK Err session_close(Session *session);
void session_close_zombie(Session *session);
/* Finalize all statements, then close. */
void session_destroy(Session *session);

void session_lock(Session *session); /* [parks]; recursive for the owner task */
void session_unlock(Session *session);
void session_interrupt(Session *session);
bool session_is_interrupted(const Session *session);

/* The error of the last call that failed, or none after one that succeeded. */
const ErrMsg *session_error(const Session *session);
/* Record an error as the session's. Returns err. */
Err session_set_error(Session *session, Err err, const char *format, ...) PRINTF_LIKE(3, 4);

bool session_autocommit(const Session *session);
bool session_in_write_transaction(const Session *session);
i64 session_changes(const Session *session);
i64 session_total_changes(const Session *session);
i64 session_last_rowid(const Session *session);
void session_set_last_rowid(Session *session, i64 rowid);
void session_set_busy_timeout(Session *session, u64 timeout_ns);
/* File of a database ("main"...), "" for in-memory ones, NULL if there is no such database. */
const char *session_file(const Session *session, const char *database);
Store *session_store(Session *session); /* Of main. */
MUST_CHECK Err session_checkpoint(Session *session);
/* Run statements until the text ends or one fails; rows are discarded. */
MUST_CHECK Err session_exec(Session *session, Slice sql);
/* Roll back what is open, if anything is; never fails and needs no memory. */
void session_rollback(Session *session);
/* How often a statement of a session that shares plans found one, since the database was opened. */
void session_plan_counts(const Session *session, u64 *hits_out, u64 *misses_out);
/* Does another transaction wait for the end of ours?  While nothing runs on the session. */
bool session_is_waited_for(const Session *session);

/* ---- whole databases (copy.c) ---- */

/* Replace database `to_name` of `to` by what `from` sees of its own `from_name`.  The error is
   `to`'s.  Two sessions.  [parks] */
MUST_CHECK Err session_copy(Session *from, const char *from_name, Session *to, const char *to_name);

/*
 * The same in steps: what is committed in the source, read on one snapshot, goes into one
 * transaction of the target, which holds the target's right to write from the first step to the
 * last.  Both run beside the sessions given, which may be used meanwhile.  A source that others
 * change between steps is copied from the start; a file that `from` itself changes is copied at the
 * last step as it is then, so a program that writes between its steps comes to an end.
 */
typedef struct SessionCopy SessionCopy;
/* Two sessions, which must outlive the copy.  ERR_NOMEM. */
MUST_CHECK Err session_copy_open(Session *from, const char *from_name, Session *to,
                                 const char *to_name, SessionCopy **copy_out);
/*
 * Copy up to `pages` pages.  *done_out: everything is there and committed.  [parks]
 * ERR_LOCKED (`from` has written in a transaction that is open), ERR_BUSY (another writes to the
 * target): nothing has changed, try again.  Other errors: the target is as it was.
 */
MUST_CHECK Err session_copy_step(SessionCopy *copy, u64 pages, bool *done_out, ErrMsg *msg);
/* Pages of 64 rows, at least one a tree, and one for the schema: those left, and all of them. */
void session_copy_progress(const SessionCopy *copy, u64 *left_out, u64 *pages_out);
/* What is not complete is taken back.  NULL is allowed.  [parks] */
void session_copy_close(SessionCopy *copy);

/* Copy what is committed in a database into a new file, by its pages if it lies in a file itself.
   ERR_EXISTS, ERR_SQL (no such database), errors of files.  [parks] */
MUST_CHECK Err session_backup(Session *session, const char *name, const char *path);

/* ---- snapshots (snapshot.c) ---- */

/*
 * A moment of a database in a file, kept for transactions of any session to join.  It holds the
 * database open, and what it sees costs memory until it is freed.  ERR_SQL: in autocommit, the
 * transaction writes to that database, no such database, not in a file.
 */
typedef struct SessionSnapshot SessionSnapshot;
/* Of what the open transaction sees; it begins to read if it has not. */
MUST_CHECK Err session_snapshot_get(Session *session, const char *name,
                                    SessionSnapshot **snapshot_out);
/* From now on the open transaction sees that moment.  ERR_SQL also while statements run, or with
 *stranger_out if the snapshot is of another database. */
MUST_CHECK Err session_snapshot_open(Session *session, const char *name,
                                     const SessionSnapshot *snapshot, bool *stranger_out);
/* Negative: `a` is the older one. */
int session_snapshot_compare(const SessionSnapshot *a, const SessionSnapshot *b);
/* May snapshots of the database be recovered now?  (There is nothing to do.) */
MUST_CHECK Err session_snapshot_recover(Session *session, const char *name);
void session_snapshot_free(SessionSnapshot *snapshot); /* NULL is allowed. */

/* Limits, numbered as SQLITE_LIMIT_*; a negative value only reads.  Returns the former value. */
#define SESSION_LIMITS 13
int session_limit(Session *session, int limit, int value);

/* Any tables of functions in addition to the built-in ones; borrowed until the session ends or the
   next call. */
void session_set_functions(Session *session, const FuncTable *functions);
/* The built-in ones: parent of a table given to session_set_functions().  NULL: out of memory. */
const FuncTable *session_builtin_functions(void);
/* Who knows collations beside the three built-in ones; call again whenever the answers change. */
void session_set_collations(Session *session, const Collation *(*find)(void *arg, Slice name),
                            void *arg);
/* A change about to be made: action as for `update`; rows of column_count cells, NULL where there
   is none. */
typedef struct SessionPreupdate {
    int action;
    const char *database, *table;
    i64 rowid_old, rowid_new;
    u32 column_count;
    const Cell *row_old, *row_new;
    u32 depth; /* 0: by the statement itself; n: by a trigger n deep. */
} SessionPreupdate;

/* Settings of a connection that are no limits.  A negative value only reads. */
typedef enum SessionSetting {
    SESSION_FOREIGN_KEYS,
    SESSION_TRIGGERS,
    SESSION_VIEWS,
    SESSION_DOUBLE_QUOTED_DML, /* "x" may be a string. */
    SESSION_DOUBLE_QUOTED_DDL,
    SESSION_REVERSE_SCANS,
    SESSION_WRITABLE_SCHEMA, /* Tables with reserved names may be made. */
    SESSION_SETTINGS
} SessionSetting;
/* Returns the value in force. */
int session_setting(Session *session, SessionSetting setting, int value);

/* A column of a table or view, found by name; the texts live as long as the schema does. */
typedef struct SessionColumn {
    const char *type, *collation;
    bool not_null, primary_key, autoincrement;
} SessionColumn;
/* `database` NULL: anywhere; `column` NULL: only whether there is such a table. */
MUST_CHECK Err session_find_column(Session *session, const char *database, const char *table,
                                   const char *column, SessionColumn *column_out);
/* Name of database `at` (0 main, 1 temp, ...), NULL if there is none. */
const char *session_database_name(const Session *session, u32 at);
/* A database of that name, with a store (temp has none before its first table). */
bool session_has_store(const Session *session, const char *name);
bool session_has_deferred_violations(const Session *session);
bool session_is_read_only(const Session *session); /* Main. */
bool session_database_is_read_only(const Session *session, const char *name);
/* Refuse what writes to this one database (not temp), or stop refusing; outside a transaction.
   Returns what was in force. */
bool session_set_database_read_only(Session *session, const char *name, bool read_only);
/* Has the open transaction written, or taken the right to? */
bool session_may_write(const Session *session);

/* What the host program wants to be told or asked; zero-initialised: nothing.  Copied.  The
   functions run inside calls of the session, on its task, with nothing locked but the session. */
typedef struct SessionHooks {
    /* The authorizer: SQLite's action codes; 0 allow, 1 deny, 2 ignore. */
    int (*authorize)(void *arg, int action, const char *first, const char *second,
                     const char *database, const char *inner);
    void *authorize_arg;
    bool (*progress)(void *arg); /* True: stop with ERR_INTERRUPT. */
    void *progress_arg;
    u32 progress_every;
    bool (*commit)(void *arg); /* True: roll back instead. */
    void *commit_arg;
    void (*rollback)(void *arg);
    void *rollback_arg;
    /* 18 insert, 23 update, 9 delete. */
    void (*update)(void *arg, int action, const char *database, const char *table, i64 rowid);
    void *update_arg;
    /* Before each change of a row of a table of the program's. */
    void (*preupdate)(void *arg, const struct SessionPreupdate *change);
    void *preupdate_arg;
    /* A transaction that wrote to this database has been committed. */
    void (*committed)(void *arg, const char *database);
    void *committed_arg;
    /* The file behind a name in ATTACH or VACUUM INTO: its path (mem_alloc'd), or an error. NULL:
       names are paths. */
    Err (*map_file)(void *arg, const char *name, bool is_written, char **path_out, ErrMsg *msg);
    void *map_file_arg;
    /* Table-valued functions beside the built-in ones; NULL: none. */
    const TableFunc *(*find_table_func)(void *arg, Slice name);
    void *find_table_func_arg;
} SessionHooks;
const SessionHooks *session_hooks(const Session *session);
void session_set_hooks(Session *session, const SessionHooks *hooks);
/* Refuse everything that writes with ERR_READONLY, or stop refusing. */
void session_set_read_only(Session *session, bool read_only);
/*
 * Give the session to another client: rolls back, forgets counters and errors; statements stay
 * prepared, with their values.  False: it holds what cannot be forgotten (temp tables, attached
 * databases, settings, a running statement), so destroy it.  `options` are those it was opened
 * with.
 */
MUST_CHECK bool session_reuse(Session *session, const SessionOptions *options);
/* What changes() and total_changes() say. */
void session_set_changes(Session *session, i64 changes, i64 total_changes);
/* Bytes that statements of the session hold now. */
u64 session_memory_bytes(const Session *session);
/* Bytes of the schemas that it knows; connections to one database share the main one. */
u64 session_schema_bytes(const Session *session);
/* Is some statement between its first step and its end? */
bool session_is_running(const Session *session);

/* ---- statements ---- */

/* The first statement of `sql`; *stmt_out NULL for blank text.  *consumed_out (may be NULL): where
   the rest begins. */
MUST_CHECK Err stmt_prepare(Session *session, Slice sql, Stmt **stmt_out, size_t *consumed_out);
/* The same of a text that ends at a NUL, or after `bytes_max`.  Its end is not looked for beyond
   the first statement. */
MUST_CHECK Err stmt_prepare_text(Session *session, const char *sql, size_t bytes_max,
                                 Stmt **stmt_out, size_t *consumed_out);
/* Statements prepared from now on do not see virtual tables: no such table. */
void session_set_without_virtual(Session *session, bool without);
/* Returns the error of its last run. NULL is allowed. */
Err stmt_finalize(Stmt *stmt);
/* Returns the error of its last run. */
Err stmt_reset(Stmt *stmt);
/* *row_out: a row is there.  After an error or the end the next step starts anew. */
MUST_CHECK Err stmt_step(Stmt *stmt, bool *row_out);

/* Index from 0.  The cell's bytes are copied.  ERR_RANGE, ERR_MISUSE while running. */
MUST_CHECK Err stmt_bind(Stmt *stmt, u32 index, const Cell *value);
void stmt_clear_bindings(Stmt *stmt);
u32 stmt_param_count(const Stmt *stmt);
const char *stmt_param_name(const Stmt *stmt, u32 index); /* With prefix, NULL for `?`. */
u32 stmt_param_index(const Stmt *stmt, const char *name); /* 1-based, 0: none. */
const Cell *stmt_param_value(const Stmt *stmt, u32 index);

u32 stmt_column_count(const Stmt *stmt);
const PlanColumn *stmt_column(const Stmt *stmt, u32 column); /* Names and origins. */
/* The current row, NULL if there is none; valid until the next step, reset or finalize. */
const Cell *stmt_row(const Stmt *stmt);
/* The same for callers that ask often: where the statement keeps it, for the statement's life.
   `cell` NULL: there is no row. */
typedef struct StmtRow {
    const Cell *cell;
    u32 columns;
} StmtRow;
const StmtRow *stmt_row_place(const Stmt *stmt);
/* NUL-terminated text of a cell of the current row, as sqlite3_column_text gives it; kept until the
   row goes.  NULL for NULL or when memory is short. */
const char *stmt_row_text(Stmt *stmt, u32 column, size_t *bytes_out);

typedef enum StmtKind {
    STMT_KIND_SELECT,
    STMT_KIND_INSERT, /* REPLACE too. */
    STMT_KIND_UPDATE,
    STMT_KIND_DELETE,
    STMT_KIND_SCHEMA, /* CREATE, DROP, ALTER, ANALYZE, REINDEX */
    STMT_KIND_BEGIN,
    STMT_KIND_END,       /* COMMIT, ROLLBACK */
    STMT_KIND_SAVEPOINT, /* SAVEPOINT, RELEASE, ROLLBACK TO */
    STMT_KIND_SETTING,   /* PRAGMA, SET */
    STMT_KIND_FILE,      /* ATTACH, DETACH, VACUUM */
    STMT_KIND_COUNT_
} StmtKind;
StmtKind stmt_kind(const Stmt *stmt);
bool stmt_is_read_only(const Stmt *stmt);
bool stmt_is_explain(const Stmt *stmt, bool *query_plan_out);
bool stmt_is_busy(const Stmt *stmt); /* Stepped and neither done nor reset. */
const char *stmt_sql(const Stmt *stmt);
/* What the statement has done since it was prepared, or since the counter was cleared. */
typedef enum StmtCounter {
    STMT_COUNT_FULL_SCAN_ROWS, /* As ExecStatus has them. */
    STMT_COUNT_SORTS,
    STMT_COUNT_BUILD_ROWS,
    STMT_COUNT_STEPS,
    STMT_COUNT_PREPARED_AGAIN, /* Because the schema or a setting had changed. */
    STMT_COUNTERS
} StmtCounter;
u64 stmt_counter(Stmt *stmt, StmtCounter counter, bool clear);
u64 stmt_memory_bytes(const Stmt *stmt); /* Held now by its run state. */
Session *stmt_session(const Stmt *stmt);
Stmt *session_next_stmt(Session *session, Stmt *after); /* NULL: the first. */
