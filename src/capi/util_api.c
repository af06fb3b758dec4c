/*
 * util_api.c -- memory, versions, words and other calls that need no connection.
 */
#include "capi/build_options.h"
#include "capi/capi.h"
#include "rt/host.h"

#include "rt/process.h"
#include "rt/random.h"
#include "rt/time.h"
#include "sql/parse/parse.h"

const char *
sqlite3_libversion(void)
{
    return SQLITE_VERSION;
}

int
sqlite3_libversion_number(void)
{
    return SQLITE_VERSION_NUMBER;
}

const char *
sqlite3_sourceid(void)
{
    /* Some programs compare it with what they were compiled against (SQLite's own shell does), so
       it can be given from outside. */
    const char *given = rt_env("WEFT_SQLITE_SOURCE_ID");
    return given != NULL ? given : SQLITE_SOURCE_ID;
}

int
sqlite3_threadsafe(void)
{
    return SQLITE_THREADSAFE;
}

int
sqlite3_os_init(void)
{
    return SQLITE_OK;
}

int
sqlite3_os_end(void)
{
    return SQLITE_OK;
}

/* ---- memory ---- */

void *
sqlite3_malloc64(sqlite3_uint64 bytes)
{
    return bytes == 0 || bytes > 0x7fffff00 ? NULL : mem_alloc((size_t)bytes);
}

void *
sqlite3_malloc(int bytes)
{
    return bytes <= 0 ? NULL : sqlite3_malloc64((sqlite3_uint64)bytes);
}

void
sqlite3_free(void *block)
{
    mem_free(block);
}

void *
sqlite3_realloc64(void *block, sqlite3_uint64 bytes)
{
    if (bytes == 0) {
        mem_free(block);
        return NULL;
    }
    return bytes > 0x7fffff00 ? NULL : mem_realloc(block, (size_t)bytes);
}

void *
sqlite3_realloc(void *block, int bytes)
{
    return sqlite3_realloc64(block, bytes < 0 ? 0 : (sqlite3_uint64)bytes);
}

int
sqlite3_release_memory(int bytes)
{
    (void)bytes;
    return 0;
}

/* ---- words and patterns ---- */

int
sqlite3_complete(const char *sql)
{
    return sql != NULL && sql_complete(SLICE(sql, strlen(sql)));
}

int
sqlite3_complete16(const void *sql16)
{
    size_t bytes;
    char *sql = capi__from_utf16(sql16, -1, &bytes);
    if (sql == NULL) return SQLITE_NOMEM;
    int complete = sqlite3_complete(sql);
    mem_free(sql);
    return complete;
}

int
sqlite3_keyword_count(void)
{
    return (int)sql_keyword_count();
}

int
sqlite3_keyword_name(int at, const char **name_out, int *bytes_out)
{
    if (at < 0 || at >= sqlite3_keyword_count()) return SQLITE_ERROR;
    if (name_out == NULL || bytes_out == NULL) return SQLITE_MISUSE;
    Slice name = sql_keyword_name((u32)at);
    *name_out = (const char *)name.p;
    *bytes_out = (int)name.bytes;
    return SQLITE_OK;
}

int
sqlite3_keyword_check(const char *word, int bytes)
{
    return word != NULL && bytes > 0 && sql_keyword_check(SLICE(word, (size_t)bytes));
}

int
sqlite3_stricmp(const char *a, const char *b)
{
    if (a == NULL || b == NULL) return (a != NULL) - (b != NULL);
    return text_compare_nocase(a, b);
}

int
sqlite3_strnicmp(const char *a, const char *b, int bytes)
{
    if (a == NULL || b == NULL) return (a != NULL) - (b != NULL);
    for (int i = 0; i < bytes; i++) {
        int x = a[i] >= 'A' && a[i] <= 'Z' ? a[i] + 32 : (unsigned char)a[i];
        int y = b[i] >= 'A' && b[i] <= 'Z' ? b[i] + 32 : (unsigned char)b[i];
        if (x != y || a[i] == 0) return x - y;
    }
    return 0;
}

/* ---- time and chance ---- */

int
sqlite3_sleep(int milliseconds)
{
    if (milliseconds <= 0) return 0;
    /* Cut short by an interrupt: the caller asked for a pause, not for a deadline. */
    return rt_sleep_ns((u64)milliseconds * 1000000) == OK ? milliseconds : 0;
}

void
sqlite3_randomness(int bytes, void *out)
{
    if (bytes > 0 && out != NULL) rt_random_bytes(out, (size_t)bytes);
}

void
sqlite3_thread_cleanup(void)
{
}

int
sqlite3_enable_shared_cache(int on)
{
    (void)on;
    return SQLITE_OK;
}
