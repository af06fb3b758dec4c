/*
 * misuse.c -- every function of the C API called wrongly: no call may crash.
 *
 * Method: each function is called with NULL for all handles, with real ones, with those of a
 * connection that is closed and a statement that is finalized, and with real ones from another
 * thread while the first is inside a statement; and with 0, -1 and a large number for every
 * integer, all other pointers being NULL; each time in a process of its own, which must end by
 * itself.  Then a few ways of misuse with their documented answers.
 */
#include "misuse.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

static void
open_handles(Handles *h)
{
    memset(h, 0, sizeof(*h));
    if (sqlite3_open(":memory:", &h->db) != SQLITE_OK) _exit(9);
    sqlite3_exec(h->db, "CREATE TABLE t(a,b); INSERT INTO t VALUES(1,'x'),(2,'y')", NULL, NULL,
                 NULL);
    sqlite3_prepare_v2(h->db, "SELECT a, b, ?1 FROM t", -1, &h->stmt, NULL);
    sqlite3_step(h->stmt);
    h->value = sqlite3_value_dup(sqlite3_column_value(h->stmt, 1));
    h->mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_RECURSIVE);
    h->str = sqlite3_str_new(h->db);
}

static const long long numbers[] = {0, -1, 1000000};

/* What they point at is not there any more. */
static void
close_handles(Handles *h)
{
    sqlite3_value_free(h->value);
    sqlite3_mutex_free(h->mutex);
    sqlite3_free(sqlite3_str_finish(h->str));
    if (sqlite3_finalize(h->stmt) != SQLITE_OK || sqlite3_close(h->db) != SQLITE_OK) _exit(8);
    h->value = NULL;
    h->mutex = NULL;
    h->str = NULL;
}

typedef struct Elsewhere {
    const Call *call;
    const Handles *h;
    long long number;
} Elsewhere;

static void *
call_elsewhere(void *arg)
{
    Elsewhere *at = arg;
    at->call->call(at->h, at->number);
    return NULL;
}

typedef enum Way { NO_HANDLES, REAL_HANDLES, CLOSED_HANDLES, OTHER_THREAD, WAYS } Way;
static const char *const way_names[WAYS] = {"no", "real", "closed", "another thread's"};

static void
call_once(const Call *call, Way way, long long number)
{
    Handles h = {0};
    pthread_t thread;
    if (way != NO_HANDLES) open_handles(&h);
    if (way == CLOSED_HANDLES) close_handles(&h);
    if (way != OTHER_THREAD) {
        call->call(&h, number);
        return;
    }
    /* A mutex belongs to who entered it: leaving one that is not held is no call of a program. */
    Elsewhere elsewhere = {call, &h, number};
    if (pthread_create(&thread, NULL, call_elsewhere, &elsewhere) != 0) _exit(7);
    pthread_join(thread, NULL);
}

/* In a process of its own: the ways from `first` to `last`; its status. */
static int
in_child(const Call *call, int first, int last)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        for (int way = first; way <= last; way++)
            call_once(call, (Way)(way / 3), numbers[way % 3]);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

/* All ways at once; one by one if that fails, to tell which. */
static void
try_call(const Call *call)
{
    if (in_child(call, 0, WAYS * 3 - 1) == 0) return;
    failures++;
    for (int way = 0; way < WAYS * 3; way++) {
        int status = in_child(call, way, way);
        if (status == 0) continue;
        printf("%s with %s handles and %lld: status %d\n", call->name, way_names[way / 3],
               numbers[way % 3], status);
    }
}

#define CHECK(expression, wanted)                                    \
    do {                                                             \
        int code = (expression);                                     \
        if (code != (wanted)) {                                      \
            failures++;                                              \
            printf("%s: %d, not %d\n", #expression, code, (wanted)); \
        }                                                            \
    } while (0)

static void
documented(void)
{
    Handles h;
    sqlite3_stmt *other = NULL;
    open_handles(&h);
    CHECK(sqlite3_bind_int(h.stmt, 1, 1), SQLITE_MISUSE); /* While it runs. */
    sqlite3_reset(h.stmt);
    CHECK(sqlite3_bind_int(h.stmt, 0, 1), SQLITE_RANGE);
    CHECK(sqlite3_bind_int(h.stmt, 2, 1), SQLITE_RANGE);
    CHECK(sqlite3_bind_int(h.stmt, 1, 1), SQLITE_OK);
    CHECK(sqlite3_column_type(h.stmt, 0), SQLITE_NULL); /* No row is current. */
    CHECK(sqlite3_column_type(h.stmt, 99), SQLITE_NULL);
    CHECK(sqlite3_data_count(h.stmt), 0);
    CHECK(sqlite3_close(h.db), SQLITE_BUSY);
    CHECK(sqlite3_prepare_v2(h.db, "", -1, &other, NULL), SQLITE_OK);
    CHECK(other == NULL, 1);
    CHECK(sqlite3_step(NULL), SQLITE_MISUSE);
    CHECK(sqlite3_finalize(NULL), SQLITE_OK);
    CHECK(sqlite3_reset(NULL), SQLITE_OK);
    CHECK(sqlite3_create_function(h.db, "f", 2000, SQLITE_UTF8, NULL, NULL, NULL, NULL),
          SQLITE_MISUSE);
    CHECK(sqlite3_close_v2(h.db), SQLITE_OK); /* Lives on until its statement is gone. */
    CHECK(sqlite3_step(h.stmt), SQLITE_ROW);
    CHECK(sqlite3_finalize(h.stmt), SQLITE_OK);
    sqlite3_value_free(h.value);
    sqlite3_mutex_free(h.mutex);
    sqlite3_free(sqlite3_str_finish(h.str));
    /* Both are gone. */
    CHECK(sqlite3_step(h.stmt), SQLITE_MISUSE);
    CHECK(sqlite3_reset(h.stmt), SQLITE_MISUSE);
    CHECK(sqlite3_finalize(h.stmt), SQLITE_MISUSE);
    CHECK(sqlite3_bind_int(h.stmt, 1, 1), SQLITE_MISUSE);
    CHECK(sqlite3_column_count(h.stmt), 0);
    CHECK(sqlite3_column_type(h.stmt, 0), SQLITE_NULL);
    CHECK(sqlite3_close(h.db), SQLITE_MISUSE);
    CHECK(sqlite3_close_v2(h.db), SQLITE_MISUSE);
    CHECK(sqlite3_exec(h.db, "SELECT 1", NULL, NULL, NULL), SQLITE_MISUSE);
    CHECK(sqlite3_prepare_v2(h.db, "SELECT 1", -1, &other, NULL), SQLITE_MISUSE);
    CHECK(sqlite3_errcode(h.db), SQLITE_MISUSE);
    CHECK(strcmp(sqlite3_errmsg(h.db), "bad parameter or other API misuse"), 0);
}

int
main(void)
{
    int count = 0;
    for (const Call *call = calls; call->name != NULL; call++, count++)
        try_call(call);
    documented();
    printf("%d functions, %d failures\n", count, failures);
    return failures != 0 || count < 250;
}
