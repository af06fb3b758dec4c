/*
 * peers_durable.c -- durable rows: random updates by 1, 8 and 32 writers, a transaction each, and
 * how long a commit takes at most while a checkpoint is written.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peers.h"
#include "store/store.h"

#define VALUE_BYTES   300
#define WRITERS_MAX   32
#define LATENCIES_MAX 1000000
#define ROWS_MOST     200000 /* More only take longer to load. */
#define HOT_GOAL      5.0    /* 32 writers of one row against one. */
#define LATENCY_GOAL  0.5    /* p99.9 with a checkpoint: at most twice that without. */

typedef struct Writer {
    const KvKind *kind;
    Kv *kv;
    KvWait wait;
    u64 rows, seed, done;
    bool is_hot; /* All increment the row behind the others. */
    atomic_bool *is_over;
    pthread_barrier_t *barrier;
    double *latency_ms;  /* NULL: not wanted. */
    double began, ended; /* As the thread saw it: who starts them may be held up. */
} Writer;

static void *
write_until_over(void *arg)
{
    Writer *writer = (Writer *)arg;
    char value[VALUE_BYTES];
    memset(value, 'w', sizeof(value));
    KvSession *session = writer->kind->session(writer->kv, writer->wait);
    pthread_barrier_wait(writer->barrier);
    writer->began = now_s();
    while (!atomic_load(writer->is_over)) {
        double began = writer->latency_ms == NULL ? 0 : now_s();
        if (writer->is_hot) {
            kv_weft_increment(session, writer->rows);
            writer->done++;
            continue;
        }
        peers_mark(value, writer->seed); /* SQLite writes nothing over what is the same. */
        writer->kind->update_one(session, random_next(&writer->seed) % writer->rows,
                                 (Slice){(const u8 *)value, sizeof(value)});
        if (writer->latency_ms != NULL && writer->done < LATENCIES_MAX)
            writer->latency_ms[writer->done] = (now_s() - began) * 1e3;
        writer->done++;
    }
    writer->ended = now_s();
    writer->kind->session_end(session);
    return NULL;
}

static void
sleep_s(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

/* Commits a second. */
static double
write_some(const KvKind *kind, Kv *kv, KvWait wait, u64 rows, u32 writers, double seconds,
           bool is_hot, u64 *done_out)
{
    static u64 seed; /* Never the same numbers twice. */
    Writer writer[WRITERS_MAX];
    pthread_t thread[WRITERS_MAX];
    pthread_barrier_t barrier;
    atomic_bool is_over = false;
    u64 done = 0;
    double began = 0, ended = 0;
    pthread_barrier_init(&barrier, NULL, writers + 1);
    for (u32 i = 0; i < writers; i++) {
        writer[i] = (Writer){.kind = kind,
                             .kv = kv,
                             .wait = wait,
                             .rows = rows,
                             .is_hot = is_hot,
                             .seed = ++seed * 0x9e3779b97f4a7c15u,
                             .is_over = &is_over,
                             .barrier = &barrier};
        if (pthread_create(&thread[i], NULL, write_until_over, &writer[i]) != 0)
            kv_die("no thread");
    }
    pthread_barrier_wait(&barrier);
    sleep_s(seconds);
    atomic_store(&is_over, true);
    for (u32 i = 0; i < writers; i++) {
        pthread_join(thread[i], NULL);
        done += writer[i].done;
        began = i == 0 ? writer[i].began : MIN_OF(began, writer[i].began);
        ended = MAX_OF(ended, writer[i].ended);
    }
    pthread_barrier_destroy(&barrier);
    *done_out += done;
    return (double)done / (ended - began);
}

static double
write_for(const KvKind *kind, Kv *kv, KvWait wait, u64 rows, u32 writers, double seconds)
{
    u64 done = 0;
    return write_some(kind, kv, wait, rows, writers, seconds, false, &done);
}

/* The way to wait with which SQLite does most; the others have one. */
static KvWait
best_wait(const KvKind *kind, Kv *kv, u64 rows, u32 writers, double seconds)
{
    KvWait best = KV_WAIT_TIMEOUT;
    double most = 0;
    if (kind != &kv_sqlite || writers == 1) return best;
    for (KvWait wait = KV_WAIT_TIMEOUT; wait < KV_WAIT_COUNT_; wait++) {
        double rate = write_for(kind, kv, wait, rows, writers, seconds);
        if (rate <= most) continue;
        most = rate;
        best = wait;
    }
    return best;
}

static void
update_rows(Peers *peers, Kv *kv[PEERS_MAX], u64 rows)
{
    static const struct {
        u32 writers;
        double goal; /* Beside SQLite. */
    } sizes[] = {{1, 1.1}, {8, 4}, {32, 8}};
    static const char *const waits[] = {"busy timeout", "polling handler", "mutex"};
    double seconds = peers->bench.options.seconds;
    for (u32 size = 0; size < COUNT_OF(sizes); size++) {
        char name[32];
        Row row[PEERS_MAX];
        KvWait wait[PEERS_MAX];
        snprintf(name, sizeof(name), "update_%u", sizes[size].writers);
        if (!peers_wants(peers, name)) continue;
        for (u32 i = 0; i < peers->kinds; i++) {
            bool is_sqlite = peers->kind[i] == &kv_sqlite;
            row[i] = peers_row(peers, name, i, "commits a second", true,
                               is_sqlite ? sizes[size].goal : 0);
            wait[i] = best_wait(peers->kind[i], kv[i], rows, sizes[size].writers, seconds);
            if (is_sqlite) snprintf(row[i].note, sizeof(row[i].note), "%s", waits[wait[i]]);
        }
        for (int round = 0; round < peers->bench.options.rounds; round++) {
            double rate[PEERS_MAX];
            for (u32 i = 0; i < peers->kinds; i++) {
                rate[i] = write_for(peers->kind[i], kv[i], wait[i], rows, sizes[size].writers,
                                    seconds);
                row_add(&row[i], rate[0], rate[i]);
            }
        }
        for (u32 i = peers->kinds > 1; i < peers->kinds; i++)
            row_show(&peers->bench, &row[i]);
    }
}

/* ---- one hot row ---- */

static void
hot_row(Peers *peers, Kv *kv, u64 rows)
{
    double seconds = peers->bench.options.seconds;
    u64 done = 0;
    if (!peers_wants(peers, "hot_row_32")) return;
    Row row = peers_row(peers, "hot_row_32", 0, "increments a second", true, HOT_GOAL);
    KvSession *session = kv_weft.session(kv, KV_WAIT_TIMEOUT);
    u8 zero[8] = {0};
    kv_weft.begin(session, true);
    kv_weft.insert(session, rows, (Slice){zero, sizeof(zero)});
    kv_weft.commit(session);
    for (int round = 0; round < peers->bench.options.rounds; round++) {
        double one = write_some(&kv_weft, kv, KV_WAIT_TIMEOUT, rows, 1, seconds, true, &done);
        double many = write_some(&kv_weft, kv, KV_WAIT_TIMEOUT, rows, 32, seconds, true, &done);
        row_add(&row, many, one);
    }
    if (kv_weft_increment(session, rows) != done + 1)
        bench_fail(&peers->bench, "the hot row has lost increments");
    kv_weft.session_end(session);
    row.peer_name = "one writer";
    row_show(&peers->bench, &row);
}

/* ---- beside a checkpoint ---- */

/* p99.9 of the commits of one writer, in ms; *checkpoints_out: how many were written beside it. */
static double
longest_commits(Kv *kv, u64 rows, double seconds, bool checkpoints, u32 *checkpoints_out)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    atomic_bool is_over = false;
    Writer writer = {.kind = &kv_weft,
                     .kv = kv,
                     .rows = rows,
                     .seed = 17,
                     .is_over = &is_over,
                     .barrier = &barrier};
    writer.latency_ms = (double *)calloc(LATENCIES_MAX, sizeof(double));
    if (writer.latency_ms == NULL) kv_die("out of memory");
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, write_until_over, &writer) != 0) kv_die("no thread");
    pthread_barrier_wait(&barrier);
    double until = now_s() + seconds;
    *checkpoints_out = 0;
    while (now_s() < until) {
        if (!checkpoints) {
            sleep_s(until - now_s());
            continue;
        }
        Err err = store_checkpoint(kv_weft_store(kv), NULL);
        if (err != OK) kv_die("checkpoint: %s", err_text(err));
        ++*checkpoints_out;
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    size_t count = MIN_OF(writer.done, (u64)LATENCIES_MAX);
    sort_doubles(writer.latency_ms, count);
    double longest = at_part(writer.latency_ms, count, 0.999);
    free(writer.latency_ms);
    return longest;
}

static void
checkpoint_row(Peers *peers, Kv *kv, u64 rows)
{
    double seconds = MAX_OF(4 * peers->bench.options.seconds, 0.2);
    u32 count = 0, none;
    if (!peers_wants(peers, "commit_p999")) return;
    Row row = peers_row(peers, "commit_p999", 0, "ms", false, LATENCY_GOAL);
    for (int round = 0; round < peers->bench.options.rounds; round++) {
        double plain = longest_commits(kv, rows, seconds, false, &none);
        row_add(&row, longest_commits(kv, rows, seconds, true, &count), plain);
    }
    row.peer_name = "no checkpoint";
    snprintf(row.note, sizeof(row.note), "%u checkpoints in the last round", count);
    row_show(&peers->bench, &row);
}

void
peers_durable_group(Peers *peers)
{
    if (!peers_wants(peers, "update_1 update_8 update_32 hot_row_32 commit_p999") &&
        strstr("update_1 update_8 update_32 hot_row_32 commit_p999", peers->bench.options.part) ==
            NULL)
        return;
    Kv *kv[PEERS_MAX];
    PeerPlace place[PEERS_MAX];
    u64 rows = MIN_OF(peers->rows, (u64)ROWS_MOST);
    for (u32 i = 0; i < peers->kinds; i++) {
        place[i] = peers_place(peers);
        kv[i] = peers_open(peers, i, &place[i], peers->pool_mib << 20, true);
        peers_fill(peers->kind[i], kv[i], rows, VALUE_BYTES);
    }
    update_rows(peers, kv, rows);
    hot_row(peers, kv[0], rows);
    checkpoint_row(peers, kv[0], rows);
    for (u32 i = 0; i < peers->kinds; i++) {
        peers->kind[i]->close(kv[i]);
        peers_place_end(&place[i]);
    }
}
