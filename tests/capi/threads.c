/*
 * threads.c -- eight threads use the C API at once: connections of their own, single and multi
 * writers mode, and one connection for all.
 *
 * Method: each thread moves money between accounts and counts its transactions; the sum of all
 * accounts is the same in every read, and no transaction is lost.  For ThreadSanitizer as well.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sqlite3.h"

#define THREADS  8
#define ACCOUNTS 20
#define SUM      (ACCOUNTS * 100)

typedef struct Worker {
    pthread_t thread;
    const char *uri;
    sqlite3 *shared; /* NULL: a connection of its own. */
    int number, rounds, failures;
} Worker;

static void
fail(Worker *worker, const char *what, sqlite3 *db)
{
    worker->failures++;
    printf("thread %d: %s: %s\n", worker->number, what, sqlite3_errmsg(db));
}

/* A function of the program's, in every connection. */
static void
same(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    sqlite3_result_value(context, argv[0]);
}

static int
transfer(sqlite3 *db, int from, int to)
{
    char sql[300];
    snprintf(sql, sizeof(sql),
             "BEGIN IMMEDIATE;"
             "UPDATE account SET money = money - same(1) WHERE id = %d;"
             "UPDATE account SET money = money + 1 WHERE id = %d;"
             "UPDATE counter SET n = n + 1; COMMIT",
             from, to);
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (code != SQLITE_OK && !sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

static void
check_sum(Worker *worker, sqlite3 *db, sqlite3_stmt *sum)
{
    int code = sqlite3_step(sum);
    if (code != SQLITE_ROW) {
        if ((code & 0xff) != SQLITE_BUSY) fail(worker, "sum", db);
    } else if (sqlite3_column_int(sum, 0) != SUM) {
        fail(worker, "the sum is another one", db);
    }
    sqlite3_reset(sum);
}

static void *
own_connection(void *arg)
{
    Worker *worker = arg;
    sqlite3 *db = NULL;
    sqlite3_stmt *sum = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI;
    if (sqlite3_open_v2(worker->uri, &db, flags, NULL) != SQLITE_OK) {
        fail(worker, "open", db);
        return NULL;
    }
    sqlite3_busy_timeout(db, 30000);
    sqlite3_create_function(db, "same", 1, SQLITE_UTF8, NULL, same, NULL, NULL);
    sqlite3_prepare_v2(db, "SELECT sum(money) FROM account", -1, &sum, NULL);
    unsigned seed = (unsigned)worker->number;
    for (int done = 0, tries = 0; done < worker->rounds && tries < worker->rounds * 200; tries++) {
        int code = transfer(db, rand_r(&seed) % ACCOUNTS, rand_r(&seed) % ACCOUNTS);
        if (code == SQLITE_OK) {
            done++;
        } else if ((code & 0xff) != SQLITE_BUSY) {
            fail(worker, "transfer", db);
        }
        if (tries % 4 == 0) check_sum(worker, db, sum);
        if (tries == worker->rounds * 200 - 1) fail(worker, "too many tries", db);
    }
    sqlite3_finalize(sum);
    if (sqlite3_close(db) != SQLITE_OK) fail(worker, "close", db);
    return NULL;
}

/* All threads on one connection: each call is whole by itself. */
static void *
shared_connection(void *arg)
{
    Worker *worker = arg;
    sqlite3 *db = worker->shared;
    for (int i = 0; i < worker->rounds; i++) {
        sqlite3_stmt *stmt = NULL;
        if (sqlite3_prepare_v2(db, "UPDATE counter SET n = n + 1", -1, &stmt, NULL) != SQLITE_OK ||
            sqlite3_step(stmt) != SQLITE_DONE)
            fail(worker, "shared", db);
        sqlite3_finalize(stmt);
        sqlite3_mutex_enter(sqlite3_db_mutex(db));
        (void)sqlite3_errmsg(db);
        sqlite3_mutex_leave(sqlite3_db_mutex(db));
    }
    return NULL;
}

static int
run(Worker *workers, void *(*work)(void *))
{
    int failures = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        failures += workers[i].failures;
    }
    return failures;
}

static int
counter(sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_prepare_v2(db, "SELECT n FROM counter", -1, &stmt, NULL);
    int n = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int(stmt, 0) : -1;
    sqlite3_finalize(stmt);
    return n;
}

static int
scenario(const char *path, const char *query, int rounds)
{
    char uri[200];
    Worker workers[THREADS] = {{0}};
    sqlite3 *db = NULL;
    snprintf(uri, sizeof(uri), "file:%s%s", path, query);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
    if (sqlite3_open_v2(uri, &db, flags, NULL) != SQLITE_OK) return 1;
    sqlite3_exec(db,
                 "CREATE TABLE account(id INTEGER PRIMARY KEY, money INT);"
                 "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i<19)"
                 "INSERT INTO account SELECT i, 100 FROM c;"
                 "CREATE TABLE counter(n); INSERT INTO counter VALUES(0)",
                 NULL, NULL, NULL);
    for (int i = 0; i < THREADS; i++)
        workers[i] = (Worker){.uri = uri, .number = i, .rounds = rounds};
    int failures = run(workers, own_connection);
    if (counter(db) != THREADS * rounds) failures++;
    printf("%s: %d transactions, %d failures\n", query, counter(db), failures);
    for (int i = 0; i < THREADS; i++)
        workers[i] = (Worker){.shared = db, .number = i, .rounds = rounds};
    failures += run(workers, shared_connection);
    if (counter(db) != 2 * THREADS * rounds) failures++;
    printf("%s: one connection: %d, %d failures\n", query, counter(db), failures);
    if (sqlite3_close(db) != SQLITE_OK) failures++;
    return failures;
}

int
main(void)
{
    char folder[] = "/tmp/capi-threads-XXXXXX", path[100];
    if (mkdtemp(folder) == NULL) return 1;
    int failures = 0;
    snprintf(path, sizeof(path), "%s/single.db", folder);
    failures += scenario(path, "?mode=rwc", 40);
    unlink(path);
    snprintf(path, sizeof(path), "%s/multi.db", folder);
    failures += scenario(path, "?weft_writers=multi", 40);
    unlink(path);
    failures += scenario("threads", "?mode=memory&cache=shared", 40);
    rmdir(folder);
    return failures != 0;
}
