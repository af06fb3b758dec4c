/*
 * absent.c -- names of the C API for what Weft does not have, or what has nothing to do here.
 *
 * Drivers are linked with immediate binding: one missing name and they do not load, whether or not
 * they would call it.  Where a connection is at hand the call leaves a message that names the
 * function.
 */
#include "capi/capi.h"

/* There is no R-tree module. */
int
sqlite3_rtree_geometry_callback(sqlite3 *db, const char *name,
                                int (*function)(sqlite3_rtree_geometry *, int, sqlite3_rtree_dbl *,
                                                int *),
                                void *arg)
{
    (void)name;
    (void)function;
    (void)arg;
    return capi__absent(db, "sqlite3_rtree_geometry_callback");
}

int
sqlite3_rtree_query_callback(sqlite3 *db, const char *name,
                             int (*function)(sqlite3_rtree_query_info *), void *arg,
                             void (*destroy)(void *))
{
    (void)name;
    (void)function;
    if (destroy != NULL) destroy(arg);
    return capi__absent(db, "sqlite3_rtree_query_callback");
}

/* As in SQLite, where it has done nothing since 3.6. */
int
sqlite3_global_recover(void)
{
    return SQLITE_OK;
}

/* A function is not told where its arguments come from. */
int
sqlite3_value_frombind(sqlite3_value *value)
{
    (void)value;
    return 0;
}
