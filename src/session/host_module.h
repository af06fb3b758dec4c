/*
 * host_module.h -- modules: where the virtual tables of a connection come from.
 *
 * A module is registered with a session under a name.  CREATE VIRTUAL TABLE names it; a table whose
 * row stands in the schema is connected when a statement first needs it, in each session by itself.
 * An eponymous module is also a table by its own name.
 *
 * Tasks: as session.h; the functions of a module run inside calls of its session and may call the
 * session again.
 */
#pragma once

#include "session/session.h"
#include "value/host_table.h"

/* What a session tells a table of its transactions.  Savepoints are numbered from 0. */
typedef enum HostStep {
    HOST_BEGIN,
    HOST_SYNC, /* First half of a commit: may fail. */
    HOST_COMMIT,
    HOST_ROLLBACK,
    HOST_SAVEPOINT,
    HOST_RELEASE,
    HOST_ROLLBACK_TO
} HostStep;

typedef struct HostModuleOps {
    /* Make a table (`create`: for CREATE VIRTUAL TABLE) and declare its columns by
       session_declare_table().  argv: module, database, table, arguments. */
    Err (*connect)(void *module, bool create, u32 argc, const char *const *argv,
                   HostTable **table_out, ErrMsg *msg);
    void (*disconnect)(HostTable *table);
    Err (*destroy)(HostTable *table, ErrMsg *msg); /* DROP TABLE; on error the table stays. */
    Err (*step)(HostTable *table, HostStep step, i32 savepoint, ErrMsg *msg);
    /* Does the table want to hear of transactions at all? */
    bool (*has_steps)(const HostTable *table);
    Err (*rename)(HostTable *table, const char *new_name, ErrMsg *msg);
    /* PRAGMA integrity_check: *report_out (mem_free) NULL if all is well. */
    Err (*check)(HostTable *table, const char *schema, const char *name, bool quick,
                 char **report_out);
    bool (*is_shadow)(void *module, const char *suffix);
    void (*free)(void *module); /* No table of it is left, and it is registered no more. */
} HostModuleOps;

typedef enum HostModuleKind {
    HOST_MODULE_CREATED,   /* Tables by CREATE VIRTUAL TABLE only. */
    HOST_MODULE_EPONYMOUS, /* Also a table by its own name ... */
    HOST_MODULE_ONLY       /* ... or only that. */
} HostModuleKind;

/* Register; an earlier module of that name goes.  `module` is the session's from now on, also on
   error. */
MUST_CHECK Err session_add_module(Session *session, const char *name, HostModuleKind kind,
                                  const HostModuleOps *ops, void *module);
/* Remove the module of that name if there is one. */
void session_drop_module(Session *session, const char *name);
/* The name of the nth registered module, NULL behind the last. */
const char *session_module_name(const Session *session, u32 at);
/* Inside of HostModuleOps.connect: the table's columns, as a CREATE TABLE.  ERR_MISUSE elsewhere.
 */
MUST_CHECK Err session_declare_table(Session *session, const char *sql);
