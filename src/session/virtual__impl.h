/*
 * virtual__impl.h -- virtual tables of a session (private to session/).
 */
#pragma once

#include "session/host_module.h"
#include "session/session__impl.h"

/* PlanContext.find_virtual: the definition of a virtual table, connected if need be. */
const TableDef *virtual__resolve(void *arg, const TableDef *stored, Slice name, ErrMsg *msg);
/* CREATE, DROP and RENAME: `stored` is the catalog's definition. */
MUST_CHECK Err virtual__create(Session *session, const TableDef *stored, ErrMsg *msg);
MUST_CHECK Err virtual__drop(Session *session, const TableDef *stored, ErrMsg *msg);
MUST_CHECK Err virtual__rename(Session *session, const TableDef *stored, const char *new_name,
                               ErrMsg *msg);
/* *report_out (mem_free) NULL: nothing is wrong. */
MUST_CHECK Err virtual__check(Session *session, const TableDef *stored, char **report_out,
                              ErrMsg *msg);
/* Does a table of that name hold what a virtual table stores? */
bool virtual__is_shadow(const Session *session, const Catalog *catalog, const char *name);

/* ExecHooks.begin_host */
MUST_CHECK Err virtual__begin(void *arg, HostTable *host, ErrMsg *msg);
bool virtual__in_transaction(const Session *session);
Err virtual__savepoint(Session *session, HostStep what, u32 number);
MUST_CHECK Err virtual__sync(Session *session);
void virtual__end(Session *session, bool commit);

/* Let go of tables that are no more, if nothing runs. */
void virtual__reap(Session *session);
/* The names of the program's modules, to the first error of `each`. */
MUST_CHECK Err virtual__module_names(const Session *session,
                                     Err (*each)(void *arg, const char *name), void *arg);
void virtual__close(Session *session);
