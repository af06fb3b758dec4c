/*
 * not_yet.c -- names of the C API that are exported but do nothing yet.
 *
 * Drivers are linked with immediate binding: one missing name and they do not load, whether or not
 * they would call it.  Where a connection is at hand the call leaves a message that names the
 * function.  A function moves out of this file when it does its work.
 */
#include "capi/capi.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int
sqlite3_aggregate_count(sqlite3_context *p0)
{
    return SQLITE_ERROR;
}

int
sqlite3_auto_extension(void (*p0)(void))
{
    return SQLITE_ERROR;
}

int
sqlite3_autovacuum_pages(sqlite3 *p0,
                         unsigned int (*p1)(void *, const char *, unsigned int, unsigned int,
                                            unsigned int),
                         void *p2, void (*p3)(void *))
{
    return capi__not_yet(p0, "sqlite3_autovacuum_pages");
}

int
sqlite3_backup_finish(sqlite3_backup *p0)
{
    return SQLITE_ERROR;
}

sqlite3_backup *
sqlite3_backup_init(sqlite3 *p0, const char *p1, sqlite3 *p2, const char *p3)
{
    (void)capi__not_yet(p0, "sqlite3_backup_init");
    return NULL;
}

int
sqlite3_backup_pagecount(sqlite3_backup *p0)
{
    return SQLITE_ERROR;
}

int
sqlite3_backup_remaining(sqlite3_backup *p0)
{
    return SQLITE_ERROR;
}

int
sqlite3_backup_step(sqlite3_backup *p0, int p1)
{
    return SQLITE_ERROR;
}

int
sqlite3_cancel_auto_extension(void (*p0)(void))
{
    return SQLITE_ERROR;
}

int
sqlite3_collation_needed(sqlite3 *p0, void *p1, void (*p2)(void *, sqlite3 *, int, const char *))
{
    return capi__not_yet(p0, "sqlite3_collation_needed");
}

int
sqlite3_collation_needed16(sqlite3 *p0, void *p1, void (*p2)(void *, sqlite3 *, int, const void *))
{
    return capi__not_yet(p0, "sqlite3_collation_needed16");
}

const char *
sqlite3_compileoption_get(int p0)
{
    return NULL;
}

int
sqlite3_compileoption_used(const char *p0)
{
    return SQLITE_ERROR;
}

int
sqlite3_config(int p0, ...)
{
    return SQLITE_ERROR;
}

int
sqlite3_create_collation16(sqlite3 *p0, const void *p1, int p2, void *p3,
                           int (*p4)(void *, int, const void *, int, const void *))
{
    return capi__not_yet(p0, "sqlite3_create_collation16");
}

sqlite3_filename
sqlite3_create_filename(const char *p0, const char *p1, const char *p2, int p3, const char **p4)
{
    return 0;
}

sqlite3_file *
sqlite3_database_file_object(const char *p0)
{
    return NULL;
}

int
sqlite3_db_config(sqlite3 *p0, int p1, ...)
{
    return capi__not_yet(p0, "sqlite3_db_config");
}

sqlite3_mutex *
sqlite3_db_mutex(sqlite3 *p0)
{
    (void)capi__not_yet(p0, "sqlite3_db_mutex");
    return NULL;
}

int
sqlite3_db_status(sqlite3 *p0, int p1, int *p2, int *p3, int p4)
{
    return capi__not_yet(p0, "sqlite3_db_status");
}

int
sqlite3_deserialize(sqlite3 *p0, const char *p1, unsigned char *p2, sqlite3_int64 p3,
                    sqlite3_int64 p4, unsigned p5)
{
    return capi__not_yet(p0, "sqlite3_deserialize");
}

int
sqlite3_enable_load_extension(sqlite3 *p0, int p1)
{
    return capi__not_yet(p0, "sqlite3_enable_load_extension");
}

int
sqlite3_file_control(sqlite3 *p0, const char *p1, int p2, void *p3)
{
    return capi__not_yet(p0, "sqlite3_file_control");
}

const char *
sqlite3_filename_database(sqlite3_filename p0)
{
    return NULL;
}

const char *
sqlite3_filename_journal(sqlite3_filename p0)
{
    return NULL;
}

const char *
sqlite3_filename_wal(sqlite3_filename p0)
{
    return NULL;
}

void
sqlite3_free_filename(sqlite3_filename p0)
{
}

int
sqlite3_global_recover(void)
{
    return SQLITE_ERROR;
}

sqlite3_int64
sqlite3_hard_heap_limit64(sqlite3_int64 p0)
{
    return 0;
}

int
sqlite3_load_extension(sqlite3 *p0, const char *p1, const char *p2, char **p3)
{
    return capi__not_yet(p0, "sqlite3_load_extension");
}

void
sqlite3_log(int p0, const char *p1, ...)
{
}

int
sqlite3_memory_alarm(void (*p0)(void *, sqlite3_int64, int), void *p1, sqlite3_int64 p2)
{
    return SQLITE_ERROR;
}

sqlite3_uint64
sqlite3_msize(void *p0)
{
    return 0;
}

sqlite3_mutex *
sqlite3_mutex_alloc(int p0)
{
    return NULL;
}

void
sqlite3_mutex_enter(sqlite3_mutex *p0)
{
}

void
sqlite3_mutex_free(sqlite3_mutex *p0)
{
}

void
sqlite3_mutex_leave(sqlite3_mutex *p0)
{
}

int
sqlite3_mutex_try(sqlite3_mutex *p0)
{
    return SQLITE_ERROR;
}

int
sqlite3_preupdate_blobwrite(sqlite3 *p0)
{
    return capi__not_yet(p0, "sqlite3_preupdate_blobwrite");
}

int
sqlite3_preupdate_count(sqlite3 *p0)
{
    return capi__not_yet(p0, "sqlite3_preupdate_count");
}

int
sqlite3_preupdate_depth(sqlite3 *p0)
{
    return capi__not_yet(p0, "sqlite3_preupdate_depth");
}

void *
sqlite3_preupdate_hook(sqlite3 *p0,
                       void (*p1)(void *, sqlite3 *, int, const char *, const char *, sqlite3_int64,
                                  sqlite3_int64),
                       void *p2)
{
    (void)capi__not_yet(p0, "sqlite3_preupdate_hook");
    return NULL;
}

int
sqlite3_preupdate_new(sqlite3 *p0, int p1, sqlite3_value **p2)
{
    return capi__not_yet(p0, "sqlite3_preupdate_new");
}

int
sqlite3_preupdate_old(sqlite3 *p0, int p1, sqlite3_value **p2)
{
    return capi__not_yet(p0, "sqlite3_preupdate_old");
}

void *
sqlite3_profile(sqlite3 *p0, void (*p1)(void *, const char *, sqlite3_uint64), void *p2)
{
    (void)capi__not_yet(p0, "sqlite3_profile");
    return NULL;
}

void
sqlite3_reset_auto_extension(void)
{
}

void
sqlite3_result_text16be(sqlite3_context *p0, const void *p1, int p2, void (*p3)(void *))
{
}

void
sqlite3_result_text16le(sqlite3_context *p0, const void *p1, int p2, void (*p3)(void *))
{
}

int
sqlite3_rtree_geometry_callback(sqlite3 *p0, const char *p1,
                                int (*p2)(sqlite3_rtree_geometry *, int, sqlite3_rtree_dbl *,
                                          int *),
                                void *p3)
{
    return capi__not_yet(p0, "sqlite3_rtree_geometry_callback");
}

int
sqlite3_rtree_query_callback(sqlite3 *p0, const char *p1, int (*p2)(sqlite3_rtree_query_info *),
                             void *p3, void (*p4)(void *))
{
    return capi__not_yet(p0, "sqlite3_rtree_query_callback");
}

unsigned char *
sqlite3_serialize(sqlite3 *p0, const char *p1, sqlite3_int64 *p2, unsigned int p3)
{
    (void)capi__not_yet(p0, "sqlite3_serialize");
    return NULL;
}

void
sqlite3_soft_heap_limit(int p0)
{
}

sqlite3_int64
sqlite3_soft_heap_limit64(sqlite3_int64 p0)
{
    return 0;
}

int
sqlite3_status(int p0, int *p1, int *p2, int p3)
{
    return SQLITE_ERROR;
}

int
sqlite3_status64(int p0, sqlite3_int64 *p1, sqlite3_int64 *p2, int p3)
{
    return SQLITE_ERROR;
}

int
sqlite3_strglob(const char *p0, const char *p1)
{
    return SQLITE_ERROR;
}

int
sqlite3_strlike(const char *p0, const char *p1, unsigned int p2)
{
    return SQLITE_ERROR;
}

int
sqlite3_table_column_metadata(sqlite3 *p0, const char *p1, const char *p2, const char *p3,
                              char const **p4, char const **p5, int *p6, int *p7, int *p8)
{
    return capi__not_yet(p0, "sqlite3_table_column_metadata");
}

int
sqlite3_test_control(int p0, ...)
{
    return SQLITE_ERROR;
}

int
sqlite3_unlock_notify(sqlite3 *p0, void (*p1)(void **, int), void *p2)
{
    return capi__not_yet(p0, "sqlite3_unlock_notify");
}

int
sqlite3_uri_boolean(sqlite3_filename p0, const char *p1, int p2)
{
    return SQLITE_ERROR;
}

sqlite3_int64
sqlite3_uri_int64(sqlite3_filename p0, const char *p1, sqlite3_int64 p2)
{
    return 0;
}

const char *
sqlite3_uri_key(sqlite3_filename p0, int p1)
{
    return NULL;
}

const char *
sqlite3_uri_parameter(sqlite3_filename p0, const char *p1)
{
    return NULL;
}

int
sqlite3_value_frombind(sqlite3_value *p0)
{
    return SQLITE_ERROR;
}

sqlite3_vfs *
sqlite3_vfs_find(const char *p0)
{
    return NULL;
}

int
sqlite3_vfs_register(sqlite3_vfs *p0, int p1)
{
    return SQLITE_ERROR;
}

int
sqlite3_vfs_unregister(sqlite3_vfs *p0)
{
    return SQLITE_ERROR;
}

int
sqlite3_wal_autocheckpoint(sqlite3 *p0, int p1)
{
    return capi__not_yet(p0, "sqlite3_wal_autocheckpoint");
}

int
sqlite3_wal_checkpoint(sqlite3 *p0, const char *p1)
{
    return capi__not_yet(p0, "sqlite3_wal_checkpoint");
}

int
sqlite3_wal_checkpoint_v2(sqlite3 *p0, const char *p1, int p2, int *p3, int *p4)
{
    return capi__not_yet(p0, "sqlite3_wal_checkpoint_v2");
}

void *
sqlite3_wal_hook(sqlite3 *p0, int (*p1)(void *, sqlite3 *, const char *, int), void *p2)
{
    (void)capi__not_yet(p0, "sqlite3_wal_hook");
    return NULL;
}
