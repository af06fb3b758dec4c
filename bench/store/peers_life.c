/*
 * peers_life.c -- how long the store takes to be there again after a kill, by the size of its data;
 * and how many bytes it writes for random updates beside SQLite.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers.h"
#include "store/store.h"

#define VALUE_BYTES   300
#define POOL_BYTES    ((u64)1 << 30)
#define ROW_BYTES     330 /* About, with its slot. */
#define SECONDS_MOST  3
#define LOG_MIB_MOST  ((u64)64)
#define LOG_MIB_LEAST ((u64)4)
#define UPDATE_BYTES  100

/* ---- restart ---- */

int
peers_life_child(const char *directory, u64 rows, u64 log_bytes)
{
    char value[VALUE_BYTES];
    u64 seed = 3;
    StoreStats before, now;
    memset(value, 'r', sizeof(value));
    KvOptions options = {.directory = directory, .memory_bytes = POOL_BYTES};
    Kv *kv = kv_weft.open(&options);
    peers_fill(&kv_weft, kv, rows, VALUE_BYTES);
    Err err = store_checkpoint(kv_weft_store(kv), NULL);
    if (err != OK) kv_die("checkpoint: %s", err_text(err));
    KvSession *session = kv_weft.session(kv, KV_WAIT_TIMEOUT);
    store_stats(kv_weft_store(kv), &before);
    do {
        for (u32 i = 0; i < 100; i++)
            kv_weft.update_one(session, random_next(&seed) % rows,
                               (Slice){(const u8 *)value, sizeof(value)});
        store_stats(kv_weft_store(kv), &now);
    } while (now.log_bytes - before.log_bytes < log_bytes);
    /* The parent counts on all of that log: no checkpoint may have begun meanwhile. */
    u8 said = now.checkpoints == before.checkpoints;
    if (write(STDOUT_FILENO, &said, 1) != 1) return 1;
    pause();
    return 1;
}

/* Seconds from a kill until the first row is read. */
static double
restart_of(Peers *peers, u64 data_mib, u64 log_mib)
{
    char rows[32], log_bytes[32];
    int ends[2];
    u8 said = 0;
    u64 count = (data_mib << 20) / ROW_BYTES;
    PeerPlace place = peers_place(peers);
    snprintf(rows, sizeof(rows), "%llu", (unsigned long long)count);
    snprintf(log_bytes, sizeof(log_bytes), "%llu", (unsigned long long)log_mib << 20);
    if (pipe(ends) != 0) kv_die("no pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", peers->self, "--child", place.path, rows, log_bytes, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &said, 1) != 1) kv_die("the child that was to be killed failed");
    close(ends[0]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (said != 1) bench_fail(&peers->bench, "a checkpoint shortened the log");
    KvOptions options = {.directory = place.path, .memory_bytes = POOL_BYTES};
    double began = now_s();
    Kv *kv = kv_weft.open(&options);
    KvSession *session = kv_weft.session(kv, KV_WAIT_TIMEOUT);
    kv_weft.begin(session, false);
    kv_weft.get(session, count / 2);
    double took = now_s() - began;
    kv_weft.commit(session);
    kv_weft.session_end(session);
    kv_weft.close(kv);
    peers_place_end(&place);
    return took;
}

static void
restart_rows(Peers *peers)
{
    if (!peers_wants(peers, "restart")) return;
    u64 large = peers->data_mib, small = large / 4;
    /* So little of it that no checkpoint is due: a quarter of what is dirty, or 16 MiB. */
    u64 log_mib = MIN_OF(LOG_MIB_MOST, MAX_OF(small / 8, LOG_MIB_LEAST));
    Row time = peers_row(peers, "restart", 0, "s", false, 0);
    Row size = peers_row(peers, "restart_by_size", 0, "s", false, 0.8);
    for (int round = 0; round < MIN_OF(peers->bench.options.rounds, 3); round++) {
        double with_small = restart_of(peers, small, log_mib);
        double with_large = restart_of(peers, large, log_mib);
        row_add(&time, with_large, 0);
        row_add(&size, with_large, with_small);
    }
    snprintf(time.note, sizeof(time.note), "%llu MiB of data, %llu MiB of log",
             (unsigned long long)large, (unsigned long long)log_mib);
    peers_show_limit(peers, &time, SECONDS_MOST);
    size.peer_name = "a quarter of it";
    row_show(&peers->bench, &size);
}

/* ---- bytes written ---- */

/* What this process has handed to the kernel to write. */
static u64
written_bytes(void)
{
    unsigned long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");
    if (file == NULL || fscanf(file, "rchar: %*u wchar: %llu", &bytes) != 1)
        kv_die("/proc/self/io cannot be read");
    fclose(file);
    return bytes;
}

static double
bytes_an_update(Peers *peers, u32 kind, u64 rows)
{
    char value[UPDATE_BYTES];
    u64 seed = 11;
    memset(value, 'b', sizeof(value));
    PeerPlace place = peers_place(peers);
    Kv *kv = peers_open(peers, kind, &place, peers->pool_mib << 20, false);
    peers_fill(peers->kind[kind], kv, rows, UPDATE_BYTES);
    KvSession *session = peers->kind[kind]->session(kv, KV_WAIT_TIMEOUT);
    u64 before = written_bytes();
    for (u64 i = 0; i < rows; i++) {
        peers_mark(value, seed);
        peers->kind[kind]->update_one(session, random_next(&seed) % rows,
                                      (Slice){(const u8 *)value, sizeof(value)});
    }
    peers->kind[kind]->session_end(session);
    peers->kind[kind]->close(kv); /* The last checkpoint counts too. */
    double each = (double)(written_bytes() - before) / (double)rows;
    peers_place_end(&place);
    return each;
}

static void
bytes_rows(Peers *peers)
{
    if (!peers_wants(peers, "bytes_written")) return;
    double ours = bytes_an_update(peers, 0, peers->rows);
    for (u32 i = peers->kinds > 1; i < peers->kinds; i++) {
        /* LMDB writes by the map's pages and syncs: what it hands over is not seen like this. */
        if (i > 0 && peers->kind[i] != &kv_sqlite) continue;
        Row row = peers_row(peers, "bytes_written", i, "bytes an update", false, i > 0 ? 2 : 0);
        row_add(&row, ours, i == 0 ? 0 : bytes_an_update(peers, i, peers->rows));
        row_show(&peers->bench, &row);
    }
}

void
peers_life_group(Peers *peers)
{
    restart_rows(peers);
    bytes_rows(peers);
}
