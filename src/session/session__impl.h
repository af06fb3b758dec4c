/*
 * session__impl.h -- the structures that session/'s files share.
 */
#pragma once

#include "exec/exec.h"
#include "rt/lock.h"
#include "rt/process.h"
#include "rt/task.h"
#include "session/session.h"
#include "sql/catalog/catalog.h"
#include "sql/parse/parse.h"
#include "sql/plan/planner.h"

/*
 * What the connections of this process to one store share.  `ddl_started` and `ddl_finished` let a
 * session skip reading the schema version: while both still equal the number at which it last
 * verified its catalog, no DDL has committed since.
 */
#define DATABASE_CATALOGS 4
/* A plan that connections share (plan_share.c). */
#define PLANS_MAX  64u
#define PLANS_WAYS 4u
typedef struct PlanKey PlanKey;
typedef struct PlanEntry {
    Plan *plan;       /* A reference; NULL: free. */
    Catalog *catalog; /* A reference: what it was made from... */
    PlanKey *key;     /* ...besides the rest. */
    u64 hash, used;
    size_t sql_bytes;
    f64 rows; /* Of its tables, then. */
} PlanEntry;

#define DATABASE_CROWDS 256u /* A power of two. */
typedef struct Database {
    struct Database *next; /* In the registry. */
    Store *store;
    u32 references;                      /* Under the registry's mutex. */
    RtMutex mutex;                       /* Protects the catalogs below. */
    Catalog *catalog[DATABASE_CATALOGS]; /* Committed versions, most recent first. */
    RtU64 ddl_started, ddl_finished;
    RtMutex plans_lock; /* Protects the next two. */
    PlanEntry plans[PLANS_MAX];
    u64 plans_used;
    RtU64 plan_hits, plan_misses;
    RtU8 crowded[DATABASE_CROWDS]; /* crowd.c: by text, runs to come that queue up. */
    MemAccount *account; /* The store's: above those of the sessions whose main database it is. */
    RtEvictor evictor;   /* The shared plans. */
} Database;

MUST_CHECK Err database__open(struct RtProcess *process, const char *path,
                              const StoreOptions *options, Database **database_out, ErrMsg *msg);
void database__share(Database *database); /* One more reference. */
void database__close(Database *database); /* NULL is allowed. */
/* A committed catalog of that version, retained, or NULL. */
Catalog *database__catalog(Database *database, u64 version);
void database__publish(Database *database, Catalog *catalog);

/* One database of a connection: 0 main, 1 temp, 2.. attached. */
typedef struct SessionDb {
    const char *name;
    Database *database; /* NULL: not there (temp before first use). */
    CatalogEnv env;
    StoreTxn *txn;    /* Open transaction, else NULL. */
    Catalog *catalog; /* What the session plans against; retained. */
    u64 verified_at;  /* ddl_started == ddl_finished == this: `catalog` is current. */
    u64 ddl_at_begin; /* ddl_started before the snapshot was taken. */
    bool verified;    /* `catalog` is what `txn` sees. */
    bool own_ddl;     /* The open transaction changed the schema. */
    bool has_token;   /* Single-writer mode: this transaction may write here. */
    bool read_only;   /* For this session, whatever the store allows. */
    u64 commits;      /* Of this session that changed something. */
    char *own_name;   /* Attached ones: the memory of `name`. */
} SessionDb;

typedef struct Savepoint {
    char *name; /* NULL: the transaction itself. */
    bool began; /* Opened the transaction (SAVEPOINT outside BEGIN). */
    StoreMark mark[CATALOG_DATABASES_MAX];
    bool open[CATALOG_DATABASES_MAX]; /* The database had a transaction at that time. */
    i64 deferred_violations;
} Savepoint;

typedef struct SessionModule SessionModule;
typedef struct SessionTable SessionTable;
typedef struct SessionConnecting SessionConnecting;

/* A finalized statement that waits for the next prepare of its text. */
#define STMT_CACHE_ENTRIES 32u
#define STMT_CACHE_WAYS    4u
/* Tests force plans (PRAGMA weft_plans). */
typedef enum SessionPlans {
    SESSION_PLANS_FREE,
    SESSION_PLANS_HASH,       /* Hash joins and subqueries by key wherever they are possible, */
    SESSION_PLANS_LOOP,       /* none, */
    SESSION_PLANS_AS_WRITTEN, /* correlated subqueries as they stand, */
    SESSION_PLANS_PLAIN,      /* or whole scans without any rewriting. */
    SESSION_PLANS
} SessionPlans;

typedef struct StmtCacheEntry {
    Stmt *stmt; /* NULL: free. */
    u64 hash;
    u64 used; /* When it came. */
    f64 rows; /* Of its tables, then. */
} StmtCacheEntry;

struct Session {
    struct RtProcess *process;
    SessionOptions options;
    RtMutex lock;
    RtPtr lock_owner; /* RtTask; only the owner itself makes something of it. */
    u32 lock_depth;
    RtTask task;       /* Entered while a call runs; interrupts go to it. */
    RtU32 interrupted; /* Calls inside when the interrupt came see it until they end. */
    ErrMsg error;

    u32 db_count;
    SessionDb db[CATALOG_DATABASES_MAX];
    StoreTxn *txn[CATALOG_DATABASES_MAX]; /* db[i].txn, as exec wants them. */
    u32 open_txns;                        /* How many of them there are. */

    bool in_transaction; /* BEGIN or SAVEPOINT: not autocommit. */
    bool doomed;         /* Only ROLLBACK is accepted. */
    bool has_shown;      /* This transaction has returned a row. */
    bool has_written;    /* A statement of this transaction wrote, before the present one. */
    bool has_read;       /* Its snapshot has been used. */
    bool concurrent;     /* BEGIN CONCURRENT or a named level in single mode. */
    bool level_pending;  /* SET TRANSACTION gave `level` for the next transaction. */
    StoreLevel level;    /* Of the open or next transaction. */
    Savepoint *savepoint;
    u32 savepoint_count, savepoint_capacity;
    i64 deferred_violations; /* Open deferred foreign key violations. */

    Stmt *first_stmt; /* All statements of the connection. */
    Stmt *current;    /* The one whose step runs now. */
    Stmt *spare_stmt; /* A freed one, whose buffers the next takes over; NULL: none. */
    ArenaPool chunks; /* Of the arenas of statements and plans. */
    StmtCacheEntry stmt_cache[STMT_CACHE_ENTRIES];
    u64 stmt_cache_used;
    u32 running; /* Statements stepped and not at their end. */
    u32 running_writes;
    bool closing; /* sqlite3_close_v2 with statements left. */

    i64 changes, total_changes, last_rowid;
    u64 write_no;   /* exec_env.write_no points here. */
    i64 now_ms;     /* 0: not asked during this step. */
    u8 random[256]; /* For random(): bytes at hand, taken from the end. */
    size_t random_left;
    int limit[SESSION_LIMITS];
    const FuncTable *functions;
    u64 environment; /* Changes whenever plans must be made again (functions, collations...). */
    const Collation *(*find_collation)(void *arg, Slice name);
    void *collation_arg;
    SessionHooks host;
    u32 wrote;          /* Bit i: the last commit wrote to database i, which nobody was told yet. */
    u32 progress_count; /* Operations since the progress handler was called. */
    FuncEnv func_env;
    ExecEnv exec_env;
    ExecHooks hooks;
    MemAccount account;
    u64 statement_bytes_max; /* From the options, or less. */

    /* Virtual tables (virtual.c). */
    SessionModule *modules;
    SessionTable *tables;
    SessionConnecting *connecting;
    u32 ddl_depth;       /* Schema changes running, one inside of the other. */
    u32 host_statements; /* Statements that hold a savepoint of the virtual tables. */

    /* Settings.  Whatever is added here, session_reuse() has to look at. */
    bool foreign_keys, recursive_triggers, query_only, ignore_check, reverse_unordered;
    u8 plans; /* SessionPlans */
    bool case_sensitive_like;
    bool without_virtual; /* Statements that are prepared now do not see virtual tables. */
    bool reserved_names;  /* DDL may use them (SQLite: writable_schema). */
    bool triggers_off, views_off, strings_off_dml, strings_off_ddl;
    bool defer_foreign_keys; /* Until the transaction ends. */
    bool count_changes, full_column_names, long_column_names;
    i64 cache_size; /* Remembered for who asks; the pool has its own size. */
    i64 *kept;      /* Pragmas that are only remembered, by number; NULL: none was set. */
};

typedef enum StmtState { STMT_READY, STMT_RUNNING, STMT_DONE, STMT_FAILED } StmtState;

/* Rows that a command (PRAGMA, EXPLAIN) produced; they live in the statement's run arena. */
typedef struct RowList {
    u32 columns, rows, capacity;
    Cell *cell; /* rows x columns */
} RowList;

struct Stmt {
    Session *session;
    Stmt *next, *previous;
    char *sql; /* NUL-terminated, this statement only. */
    size_t sql_bytes, sql_room;
    Arena arena;             /* Syntax tree of commands. */
    const AstStatement *ast; /* Commands only; NULL for planned statements. */
    Plan *plan;
    u64 environment;                         /* The session's when the plan was made. */
    Catalog *catalog[CATALOG_DATABASES_MAX]; /* Retained: what the plan was made from. */
    Exec *exec;
    StmtState state;
    Err last_error;
    u8 explain;          /* AstExplain */
    u8 kind;             /* AstStatementKind */
    bool is_write;       /* Counts in running_writes while running. */
    bool reads_nothing;  /* Of any database: needs no transaction. */
    bool host_savepoint; /* The virtual tables hold a savepoint for it. */
    bool shown;          /* This run has given a row. */
    bool marked;         /* A write: `mark` is of this run, */
    bool at_once;        /* and only a place: the run is one write or none. */
    bool no_virtual;     /* Does not see virtual tables. */
    bool is_whole_text;  /* `sql` is all that prepare was given. */
    bool may_queue;      /* This run could take its place in a queue (crowd.c), */
    bool in_crowd;       /* and did. */
    u64 text_hash;       /* 0: not known. */
    StmtRow row;
    Cell changed;                          /* PRAGMA count_changes: the row of a write. */
    StoreMark mark[CATALOG_DATABASES_MAX]; /* Of a write: where it began. */
    u64 count[STMT_COUNTERS];              /* Gathered from run states (stmt_counter()). */
    u32 param_count, param_room;
    Cell *param;
    Buf *param_bytes; /* Owned bytes of text and blob parameters. */
    Arena run;        /* Bytes of the present run: command rows, texts of columns. */
    RowList rows;
    u32 rows_shown;
    const PlanColumn *column; /* Of commands. */
    u32 column_count;
    char **text; /* Cached texts of the current row, in `run_text`. */
    Arena row_text;
};

/* ---- session.c ---- */
/* A session of its own, with the same options, whose main database is number `at` of `session`. */
MUST_CHECK Err session__open_beside(const Session *session, u32 at, Session **beside_out);
/* Copy the store's or planner's error into the session. */
Err session__fail(Session *session, Err err, ErrMsg *msg);
/* "unknown database" and the name as it was typed. */
Err session__unknown_database(Session *session, const AstName *name);
/* session->error is ERR_NOMEM: say whose cap was met, if it was one. */
void session__name_cap(Session *session);
Err session__store_error(Session *session, u32 database, Err err);
void session__enter(Session *session, RtTask **previous_out);
void session__leave(Session *session, RtTask *previous);
/* An interrupt ends what ran when it came; with nothing running it is over. */
void session__forget_interrupt(Session *session);
bool session__single(const Session *session);

/* ---- crowd.c ---- */
/* Before a run begins: if its text is crowded, wait for the others and take a fresh snapshot. */
Err crowd__enter(Stmt *stmt);
/* It has lost a row to another.  True: it let go of all that it holds, and its next run queues up.
 */
bool crowd__leave_rows(Stmt *stmt);

/* ---- stmt.c, stmt_cache.c ---- */
void stmt__gather_counts(Stmt *stmt); /* Of its run state, before that goes. */
void stmt__free(Stmt *stmt);
/* Free what the session keeps of freed statements. */
void stmt__free_spare(Session *session);
/* A plan from the shared ones, referenced; NULL: make one. */
Plan *plan_share__take(const Stmt *stmt, const PlanContext *context);
/* Offer one that was just made. */
void plan_share__give(const Stmt *stmt, const PlanContext *context, Plan *plan);
/* Drop those made from other catalogs than this one (NULL: all). */
void plan_share__clear(Database *database, const Catalog *but);
/* Drop plans that no statement uses; RtEvictor.give. */
u64 plan_share__give_back(void *database, u64 bytes);
/* Rows in the tables of a plan, as far as it depends on them; and whether that is still so. */
f64 stmt_cache__rows(const Plan *plan);
bool stmt_cache__rows_near(const Plan *plan, f64 then);
/* A statement of that text, ready to be used; NULL: there is none.  *hash_out: of the text, as in
   Stmt.text_hash; 0: not known. */
Stmt *stmt_cache__take(Session *session, Slice sql, u64 *hash_out);
/* Keep a statement that was finalized and is in no list any more; false: it is not worth it. */
bool stmt_cache__keep(Stmt *stmt);
/* Free what is kept: before anything goes that a plan or its run state may point to. */
void stmt_cache__clear(Session *session);

/* ---- explain.c ---- */
/* The columns of EXPLAIN and EXPLAIN ANALYZE. */
void explain__describe(Stmt *stmt);
/* EXPLAIN of a command, which is one instruction; EXPLAIN QUERY PLAN has nothing to say of one. */
MUST_CHECK Err explain__command(Stmt *stmt);
MUST_CHECK Err explain__list_command(Stmt *stmt);
/* EXPLAIN: the listing as rows of the statement. */
MUST_CHECK Err explain__list(Stmt *stmt);
/* EXPLAIN ANALYZE, at the end of the run: what each operator did. */
MUST_CHECK Err explain__report(Stmt *stmt);

/* ---- schema.c: catalogs of the session ---- */
/* Make every database's catalog the one that the present snapshot sees. */
MUST_CHECK Err session__refresh_catalogs(Session *session);
/* Are the catalogs in hand what a snapshot of now would see, as far as the DDL counters tell? */
bool session__catalogs_stand(const Session *session);
/* Is the catalog in hand what the snapshot sees, as far as the DDL counters tell? */
bool session__verify_at_once(SessionDb *db);
void session__catalog_view(const Session *session, CatalogView *view_out);
/* The statement that runs changed the schema of a database; takes over `catalog`. */
void session__set_own_catalog(Session *session, u32 database, Catalog *catalog);
/* After an undo: forget catalogs that may not hold any more. */
void session__forget_own_catalogs(Session *session);
MUST_CHECK Err session__open_temp(Session *session);
void session__plan_context(Session *session, const CatalogView *view, PlanContext *context_out);

/* ---- transaction.c ---- */
/* Have a transaction open on each database (in autocommit: begin one). */
MUST_CHECK Err session__ensure_txn(Session *session);
/* The transaction of a database has ended. */
void session__forget_txn(Session *session, u32 at);
/* Begin on one database. */
MUST_CHECK Err session__begin_on(Session *session, u32 at);
/* Become a writer: the token of each database that `plan` writes, or schema locks on its tables. */
MUST_CHECK Err session__ensure_writer(Session *session, const Plan *plan);
/* The same for one database, or for all of them (negative): DDL, BEGIN IMMEDIATE. */
MUST_CHECK Err session__ensure_token(Session *session, i32 database);
MUST_CHECK Err session__begin(Session *session, const AstTransaction *ast);
MUST_CHECK Err session__commit(Session *session);
void session__rollback(Session *session);
MUST_CHECK Err session__savepoint(Session *session, Slice name);
MUST_CHECK Err session__release(Session *session, Slice name);
MUST_CHECK Err session__rollback_to(Session *session, Slice name);
MUST_CHECK Err session__set_isolation(Session *session, AstIsolation isolation, bool for_session);
/* Park until everything that this transaction has read or judged is durable: before a row, a count,
   an error or "no rows" is shown.  From then on no statement of it is run again. */
MUST_CHECK Err session__wait_shown(Session *session);
/* The end of a statement in autocommit: commit or drop the transaction if nobody needs it. */
MUST_CHECK Err session__autocommit_end(Session *session, bool ok);
/* Does the end of a query have to do anything about a transaction? */
bool session__has_work_at_end(const Session *session);
/* Autocommit, and the only statement is a query that will not read again: let go of its snapshots
   before it is stepped to its end. */
void session__drop_snapshots(Session *session);
void session__marks(Session *session, StoreMark *mark_out);
/* Where they would be, for who undoes to them only if it has written nothing. */
void session__places(Session *session, StoreMark *place_out);
/* No statement that writes runs: only savepoints are undone to. */
void session__drop_marks(Session *session);
void session__undo_to(Session *session, const StoreMark *mark);
/* May the statement that just failed with ERR_BUSY_SNAPSHOT be run again on a fresh snapshot? */
bool session__may_restart(const Session *session);
MUST_CHECK Err session__restart(Session *session);
/* Trip every other running statement (of one tree, or all). */
void session__trip(Session *session, const Exec *except, const Store *store, TreeId tree);
void session__trip_all(Session *session);

/* ---- maintain.c ---- */
MUST_CHECK Err maintain__attach(Stmt *stmt, const AstAttach *ast);
MUST_CHECK Err maintain__detach(Stmt *stmt, const AstAttach *ast);
MUST_CHECK Err maintain__vacuum(Stmt *stmt, const AstVacuum *ast);
/* Every table and index of one database against each other; findings go to stmt->rows. */
MUST_CHECK Err maintain__integrity_check(Stmt *stmt, u32 database, i64 findings_max);

/* ---- copy.c ---- */
/* A session on the new file `path`, with the options of `session`, in no transaction; there may be
   a file, but nothing in it (ERR_EXISTS).  *to_out is to be destroyed, also after an error. */
MUST_CHECK Err copy__target_open(const Session *session, const char *path, Session **to_out,
                                 ErrMsg *msg);
/* Replace a whole database by a copy of another (VACUUM INTO, backup) and commit.  `session` has a
   transaction and catalogs; `to` is in no transaction. */
MUST_CHECK Err copy__database(Session *session, u32 database, Session *to, u32 to_database,
                              ErrMsg *msg);

/* ---- command.c, pragma.c ---- */
/* Columns that a command returns; called at prepare. */
MUST_CHECK Err command__describe(Stmt *stmt);
/* Run it; rows go to stmt->rows. */
MUST_CHECK Err command__run(Stmt *stmt);
bool command__is_read_only(const AstStatement *ast);
/* A pragma that changes the file, as SQLite says of it. */
bool pragma__writes(const AstPragma *ast);
/* pragma_func.c: pragma_NAME() for every pragma with result columns. */
MUST_CHECK Err pragma__functions(Arena *arena, TableFunc **funcs_out, u32 *count_out);
/* The one of that name, or NULL. */
const TableFunc *database__pragma_function(Slice name);
u32 pragma__count(void);
/* No columns: it is no function. */
const char *pragma__describe_at(u32 at, u32 *columns_out, const char *const **column_out,
                                bool *takes_arg_out, bool *takes_schema_out);
/* What the pragmas that are only remembered say before they are set; owned by the caller. */
i64 *pragma__defaults(void);
MUST_CHECK Err pragma__describe(Stmt *stmt);
MUST_CHECK Err pragma__run(Stmt *stmt);
MUST_CHECK Err rows__add(Stmt *stmt, const Cell *cells);
