/*
 * load.c -- worker threads, retries, latencies.
 */
#include "load.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LATENCIES_MAX 2000000
#define RETRIES_MAX   1000000

typedef struct Start {
    Worker *worker;
    pthread_barrier_t *barrier;
    double *begun; /* All the same, set by worker 0. */
} Start;

int64_t
load_sync_count(void)
{
    uint64_t (*count)(void) = NULL;
    void *address = dlsym(RTLD_DEFAULT, "bench_sync_count");
    if (address == NULL) return -1;
    memcpy(&count, &address, sizeof(count));
    return (int64_t)count();
}

static bool
is_in_the_way(int code)
{
    return (code & 0xff) == CODE_BUSY || (code & 0xff) == CODE_LOCKED;
}

int
load_step(Worker *worker, sqlite3_stmt *stmt)
{
    const Engine *e = worker->db.engine;
    int code = e->step(stmt);
    while (code == CODE_ROW)
        code = e->step(stmt);
    int extended = code == CODE_DONE ? CODE_OK : e->extended_errcode(worker->db.handle);
    e->reset(stmt);
    return extended;
}

int
load_step_int(Worker *worker, sqlite3_stmt *stmt, int64_t *value_out, bool *found_out)
{
    const Engine *e = worker->db.engine;
    int code = e->step(stmt);
    *found_out = code == CODE_ROW;
    if (code == CODE_ROW && e->column_type(stmt, 0) == 5) *found_out = false; /* NULL */
    *value_out = code == CODE_ROW ? e->column_int64(stmt, 0) : 0;
    while (code == CODE_ROW)
        code = e->step(stmt);
    int extended = code == CODE_DONE ? CODE_OK : e->extended_errcode(worker->db.handle);
    e->reset(stmt);
    return extended;
}

static void
must_retry(Worker *worker, int code, int *tries)
{
    if (!is_in_the_way(code)) db_must(&worker->db, code, "transaction");
    worker->retries++;
    if (++*tries < RETRIES_MAX) return;
    fprintf(stderr, "bench: %s: a transaction did not come through\n", worker->db.engine->name);
    exit(1);
}

static void
lock_writer(Worker *worker, bool writes)
{
    if (writes && worker->load->style == LOAD_MUTEX) pthread_mutex_lock(worker->load->mutex);
}

static void
unlock_writer(Worker *worker, bool writes)
{
    if (writes && worker->load->style == LOAD_MUTEX) pthread_mutex_unlock(worker->load->mutex);
}

bool
load_transact(Worker *worker, bool writes, int (*body)(Worker *worker, void *arg), void *arg)
{
    const Engine *e = worker->db.engine;
    const char *begin = writes && !e->is_weft && worker->load->connections > 1 ? "BEGIN IMMEDIATE"
                                                                               : "BEGIN";
    bool is_committed = false;
    lock_writer(worker, writes);
    for (int tries = 0; !is_committed;) {
        int code = e->exec(worker->db.handle, begin, NULL, NULL, NULL);
        if (code == CODE_OK) code = body(worker, arg);
        if (code == CODE_OK) code = e->exec(worker->db.handle, "COMMIT", NULL, NULL, NULL);
        is_committed = code == CODE_OK;
        if (is_committed) break;
        if (code != LOAD_ROLLBACK && !is_in_the_way(code))
            db_must(&worker->db, code, "transaction");
        if (!e->get_autocommit(worker->db.handle)) db_exec(&worker->db, "ROLLBACK");
        if (code == LOAD_ROLLBACK) break;
        must_retry(worker, code, &tries);
    }
    unlock_writer(worker, writes);
    return is_committed;
}

void
load_autocommit(Worker *worker, bool writes, sqlite3_stmt *stmt)
{
    lock_writer(worker, writes);
    for (int tries = 0;;) {
        int code = load_step(worker, stmt);
        if (code == CODE_OK) break;
        must_retry(worker, code, &tries);
    }
    unlock_writer(worker, writes);
}

static void
note_latency(Worker *worker, double ms)
{
    int kind = worker->kind;
    int64_t at = worker->done[kind]++;
    if (at >= LATENCIES_MAX) return;
    if (at == worker->latency_capacity[kind]) {
        worker->latency_capacity[kind] = at == 0 ? 1024 : 2 * at;
        size_t bytes = (size_t)worker->latency_capacity[kind] * sizeof(float);
        worker->latency_ms[kind] = realloc(worker->latency_ms[kind], bytes);
        if (worker->latency_ms[kind] == NULL) abort();
    }
    worker->latency_ms[kind][at] = (float)ms;
}

static void *
worker_main(void *arg)
{
    Start *start = arg;
    Worker *worker = start->worker;
    const Load *load = worker->load;
    worker->db = db_open(load->engine, load->path, load->mode);
    if (load->style == LOAD_POLL)
        load->engine->busy_handler(worker->db.handle, engine_poll_busy, NULL);
    else
        load->engine->busy_timeout(worker->db.handle, 60000);
    load->start(worker);
    pthread_barrier_wait(start->barrier);
    if (worker->number == 0) *start->begun = now_s();
    pthread_barrier_wait(start->barrier);
    double begun = *start->begun, from = begun;
    while (from < begun + load->seconds) {
        load->operate(worker);
        double until = now_s();
        note_latency(worker, (until - from) * 1e3);
        int tenth = (int)((until - begun) * 10);
        if (tenth < LOAD_SECONDS * 10) worker->per_tenth[tenth]++;
        from = until;
    }
    load->end(worker);
    db_close(&worker->db);
    return NULL;
}

/* The slowest whole second as a part of the median one. */
static double
slowest_second(const Worker *worker, int workers, double seconds)
{
    double count[LOAD_SECONDS] = {0};
    int whole = (int)seconds;
    if (whole < 4) return 1;
    for (int i = 0; i < workers; i++) {
        for (int at = 0; at < whole * 10; at++)
            count[at / 10] += worker[i].per_tenth[at];
    }
    sort_doubles(count, (size_t)whole);
    return count[whole / 2] > 0 ? count[0] / count[whole / 2] : 0;
}

static void
take_latencies(LoadResult *result, const Worker *worker, int workers, int kind)
{
    size_t count = 0;
    for (int i = 0; i < workers; i++) {
        result->done_of[kind] += worker[i].done[kind];
        count += (size_t)(worker[i].done[kind] < LATENCIES_MAX ? worker[i].done[kind]
                                                               : LATENCIES_MAX);
    }
    if (count == 0) return;
    double *all = malloc(count * sizeof(double));
    if (all == NULL) abort();
    size_t at = 0;
    for (int i = 0; i < workers; i++) {
        for (int64_t j = 0; j < worker[i].done[kind] && j < LATENCIES_MAX; j++)
            all[at++] = (double)worker[i].latency_ms[kind][j];
    }
    sort_doubles(all, count);
    result->p50_ms[kind] = at_part(all, count, 0.5);
    result->p95_ms[kind] = at_part(all, count, 0.95);
    result->p99_ms[kind] = at_part(all, count, 0.99);
    result->longest_ms[kind] = all[count - 1];
    free(all);
}

LoadResult
load_run(const Load *load)
{
    LoadResult result = {0};
    size_t workers = (size_t)load->connections;
    Worker *worker = calloc(workers, sizeof(Worker));
    Start *start = calloc(workers, sizeof(Start));
    pthread_t *thread = calloc(workers, sizeof(pthread_t));
    if (worker == NULL || start == NULL || thread == NULL) abort();
    pthread_barrier_t barrier;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    Load own = *load;
    double begun = 0;
    own.mutex = &mutex;
    pthread_barrier_init(&barrier, NULL, (unsigned)workers);
    int64_t syncs = load_sync_count();
    for (size_t i = 0; i < workers; i++) {
        worker[i].load = &own;
        worker[i].number = (int)i;
        worker[i].state = (load->seed + 1) * 0x9e3779b97f4a7c15u + (i + 1) * 88172645463325252u;
        start[i] = (Start){&worker[i], &barrier, &begun};
        if (pthread_create(&thread[i], NULL, worker_main, &start[i]) != 0) abort();
    }
    for (size_t i = 0; i < workers; i++)
        pthread_join(thread[i], NULL);
    double seconds = now_s() - begun;
    result.syncs = syncs < 0 ? -1 : load_sync_count() - syncs;
    for (int kind = 0; kind < LOAD_KINDS; kind++)
        take_latencies(&result, worker, (int)workers, kind);
    for (size_t i = 0; i < workers; i++) {
        result.retries += worker[i].retries;
        result.acknowledged += worker[i].acknowledged;
        for (int kind = 0; kind < LOAD_KINDS; kind++) {
            result.done += worker[i].done[kind];
            free(worker[i].latency_ms[kind]);
        }
    }
    if (load->acknowledged_total != NULL) *load->acknowledged_total += result.acknowledged;
    result.per_second = (double)result.done / seconds;
    result.slowest_second = slowest_second(worker, (int)workers, load->seconds);
    pthread_barrier_destroy(&barrier);
    free(worker);
    free(start);
    free(thread);
    return result;
}

LoadStyle
load_best_style(const Load *load)
{
    LoadStyle best = LOAD_TIMEOUT;
    double most = 0;
    if (load->engine->is_weft || load->connections == 1) return best;
    for (LoadStyle style = LOAD_TIMEOUT; style < LOAD_STYLES; style++) {
        Load once = *load;
        once.style = style;
        double rate = load_run(&once).per_second;
        if (rate <= most) continue;
        most = rate;
        best = style;
    }
    return best;
}
