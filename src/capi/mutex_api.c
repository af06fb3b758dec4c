/*
 * mutex_api.c -- sqlite3_mutex: locks for the host program, recursive where SQLite's are.
 */
#include "capi/process.h"

#include "rt/task.h"

static bool
is_mine(CapiMutex *mutex)
{
    return rt_load_relaxed(&mutex->owner) == rt_runner();
}

sqlite3_mutex *
sqlite3_mutex_alloc(int id)
{
    CapiProcess *process = capi__process();
    if (process == NULL || id < 0 || id >= (int)STATIC_MUTEXES) return NULL;
    if (id > SQLITE_MUTEX_RECURSIVE) return (sqlite3_mutex *)&process->static_mutex[id];
    CapiMutex *mutex = MEM_NEW(CapiMutex);
    if (mutex != NULL) mutex->id = id;
    return (sqlite3_mutex *)mutex;
}

void
sqlite3_mutex_free(sqlite3_mutex *handle)
{
    CapiMutex *mutex = (CapiMutex *)handle;
    if (mutex != NULL && mutex->id <= SQLITE_MUTEX_RECURSIVE) mem_free(mutex);
}

static void
taken(CapiMutex *mutex)
{
    rt_store_relaxed(&mutex->owner, (void *)(uintptr_t)rt_runner());
    mutex->depth = 1;
}

void
sqlite3_mutex_enter(sqlite3_mutex *handle)
{
    CapiMutex *mutex = (CapiMutex *)handle;
    if (mutex == NULL) return;
    if (mutex->id == SQLITE_MUTEX_RECURSIVE && is_mine(mutex)) {
        mutex->depth++;
        return;
    }
    rt_mutex_lock(&mutex->mutex);
    taken(mutex);
}

int
sqlite3_mutex_try(sqlite3_mutex *handle)
{
    CapiMutex *mutex = (CapiMutex *)handle;
    if (mutex == NULL) return SQLITE_OK;
    if (mutex->id == SQLITE_MUTEX_RECURSIVE && is_mine(mutex)) {
        mutex->depth++;
        return SQLITE_OK;
    }
    if (!rt_mutex_try_lock(&mutex->mutex)) return SQLITE_BUSY;
    taken(mutex);
    return SQLITE_OK;
}

void
sqlite3_mutex_leave(sqlite3_mutex *handle)
{
    CapiMutex *mutex = (CapiMutex *)handle;
    if (mutex == NULL || !is_mine(mutex)) return;
    if (--mutex->depth > 0) return;
    rt_store_relaxed(&mutex->owner, NULL);
    rt_mutex_unlock(&mutex->mutex);
}

/* A mutex for the program's own sections around a connection.  Calls of the API lock the session by
   themselves: one thread inside of a section does not keep another from a call. */
sqlite3_mutex *
sqlite3_db_mutex(sqlite3 *db)
{
    if (!capi__db_ok(db) || db->without_mutex) return NULL;
    void *mutex = rt_load_acquire(&db->mutex);
    if (mutex != NULL) return (sqlite3_mutex *)mutex;
    void *made = sqlite3_mutex_alloc(SQLITE_MUTEX_RECURSIVE);
    if (rt_cas(&db->mutex, &mutex, made)) return (sqlite3_mutex *)made;
    sqlite3_mutex_free((sqlite3_mutex *)made); /* Another thread was first. */
    return (sqlite3_mutex *)mutex;
}
