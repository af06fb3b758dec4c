/*
 * handle.c -- memory of connections and statements: once one, always one.
 *
 * A program may call with a handle that it has closed or finalized; the answer is SQLITE_MISUSE.
 * So the memory of a handle is never given back to the allocator before the process's end: it
 * keeps its magic number of 0 until it is the next handle of the same kind.  Statements go back to
 * their connection, and with it to the process; there are never more than were open at once.
 */
#include "capi/process.h"

sqlite3 *
capi__db_new(void)
{
    CapiProcess *process = capi__process();
    if (process == NULL) return MEM_NEW(sqlite3); /* A child made by fork(): it keeps its own. */
    rt_mutex_lock(&process->mutex);
    sqlite3 *db = process->free_db;
    if (db != NULL) process->free_db = db->next_free;
    rt_mutex_unlock(&process->mutex);
    if (db == NULL) return MEM_NEW(sqlite3);
    *db = (sqlite3){.magic = 0};
    return db;
}

void
capi__db_free(sqlite3 *db)
{
    sqlite3_stmt *first = db->free_stmt, *last = first;
    db->free_stmt = NULL;
    db->magic = 0;
    CapiProcess *process = capi__process();
    if (process == NULL) {
        capi__free_handles(db, first);
        return;
    }
    while (last != NULL && last->next != NULL)
        last = last->next;
    rt_mutex_lock(&process->mutex);
    db->next_free = process->free_db;
    process->free_db = db;
    if (last != NULL) {
        last->next = process->free_stmt;
        process->free_stmt = first;
    }
    rt_mutex_unlock(&process->mutex);
}

sqlite3_stmt *
capi__stmt_new(sqlite3 *db)
{
    sqlite3_stmt *stmt = db->free_stmt;
    if (stmt != NULL) db->free_stmt = stmt->next;
    CapiProcess *process = stmt == NULL ? capi__process() : NULL;
    if (process != NULL) {
        rt_mutex_lock(&process->mutex);
        stmt = process->free_stmt;
        if (stmt != NULL) process->free_stmt = stmt->next;
        rt_mutex_unlock(&process->mutex);
    }
    return stmt != NULL ? stmt : MEM_NEW(sqlite3_stmt);
}

void
capi__stmt_free(sqlite3 *db, sqlite3_stmt *stmt)
{
    *stmt = (sqlite3_stmt){.next = db->free_stmt};
    db->free_stmt = stmt;
}

void
capi__free_handles(sqlite3 *db, sqlite3_stmt *stmt)
{
    while (db != NULL) {
        sqlite3 *next = db->next_free;
        mem_free(db);
        db = next;
    }
    while (stmt != NULL) {
        sqlite3_stmt *next = stmt->next;
        mem_free(stmt);
        stmt = next;
    }
}
