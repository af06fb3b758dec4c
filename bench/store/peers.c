/*
 * peers.c -- the store's face beside LMDB and SQLite's B-tree, the same work in turn.
 *
 *   store_peers [--sqlite LIBRARY] [--device memory|disk|fixed] [--dir DIRECTORY] [--json FILE]
 *               [--rounds N] [--rows N] [--data-mib N] [--seconds S] [--part NAME]
 *
 * Device memory: what needs no sync.  Device fixed (with bench/libfixed_sync.so preloaded) or disk:
 * durable rows.  LMDB is there if the program was built
 * where liblmdb-dev is; SQLite with --sqlite.  What is not there is told as missing.
 */
#include "peers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "store/store.h"

#define FILL_COMMIT 1000

double
thread_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void
peers_mark(char *value, u64 number)
{
    for (u32 i = 0; i < 16; i++)
        value[i] = (char)('a' + (number >> 4 * i & 15));
}

PeerPlace
peers_place(const Peers *peers)
{
    PeerPlace place;
    int bytes = snprintf(place.path, sizeof(place.path), "%s/peer-XXXXXX",
                         peers->bench.options.directory);
    if (bytes >= (int)sizeof(place.path)) kv_die("the name of the directory is too long");
    if (mkdtemp(place.path) == NULL) kv_die("cannot make %s", place.path);
    return place;
}

void
peers_place_end(const PeerPlace *place)
{
    char command[4200];
    snprintf(command, sizeof(command), "rm -r '%s'", place->path);
    if (system(command) != 0) kv_die("cannot remove %s", place->path);
}

Kv *
peers_open(const Peers *peers, u32 kind, const PeerPlace *place, u64 memory_bytes, bool durable)
{
    KvOptions options = {place->path, memory_bytes, durable, &peers->bench.engine[1]};
    return peers->kind[kind]->open(&options);
}

void
peers_fill(const KvKind *kind, Kv *kv, u64 rows, u32 value_bytes)
{
    char value[512];
    memset(value, 'a', sizeof(value));
    KvSession *session = kind->session(kv, KV_WAIT_TIMEOUT);
    for (u64 i = 0; i < rows; i++) {
        if (i % FILL_COMMIT == 0) kind->begin(session, true);
        value[0] = (char)('a' + i % 26);
        kind->insert(session, i, (Slice){(const u8 *)value, value_bytes});
        if (i % FILL_COMMIT == FILL_COMMIT - 1 || i == rows - 1) kind->commit(session);
    }
    kind->session_end(session);
}

Row
peers_row(const Peers *peers, const char *name, u32 kind, const char *unit, bool is_rate,
          double goal)
{
    Row row = {.unit = unit, .is_rate = is_rate, .goal = goal};
    const char *device = peers->bench.options.device;
    if (kind > 0) row.peer_name = peers->kind[kind]->name;
    snprintf(row.name, sizeof(row.name), "store.%s%s%s%s", name, kind > 0 ? "_" : "",
             kind > 0 ? row.peer_name : "", strcmp(device, "disk") == 0 ? "_disk" : "");
    return row;
}

bool
peers_wants(const Peers *peers, const char *name)
{
    const char *part = peers->bench.options.part;
    return part == NULL || strstr(name, part) != NULL;
}

void
peers_show_limit(Peers *peers, Row *row, double limit)
{
    for (int i = 0; i < row->rounds; i++)
        row->peer[i] = limit;
    row->peer_name = row->is_rate ? "at least" : "at most";
    row->goal = 1;
    row_show(&peers->bench, row);
}

static bool
read_option(Peers *peers, const char *name, const char *value, const char **sqlite)
{
    Options *options = &peers->bench.options;
    if (strcmp(name, "--sqlite") == 0)
        *sqlite = value;
    else if (strcmp(name, "--device") == 0)
        options->device = value;
    else if (strcmp(name, "--dir") == 0)
        options->directory = value;
    else if (strcmp(name, "--json") == 0)
        options->json = value;
    else if (strcmp(name, "--part") == 0)
        options->part = value;
    else if (strcmp(name, "--rounds") == 0)
        options->rounds = atoi(value);
    else if (strcmp(name, "--rows") == 0)
        peers->rows = strtoull(value, NULL, 10);
    else if (strcmp(name, "--data-mib") == 0)
        peers->data_mib = strtoull(value, NULL, 10);
    else if (strcmp(name, "--seconds") == 0)
        options->seconds = atof(value);
    else
        return false;
    return true;
}

static void
find_kinds(Peers *peers, const char *sqlite)
{
    peers->kind[peers->kinds++] = &kv_weft;
    if (kv_lmdb() != NULL) {
        peers->kind[peers->kinds++] = kv_lmdb();
    } else {
        fprintf(stderr, "bench: LMDB (liblmdb-dev) was not there when this was built: missing\n");
    }
    if (sqlite == NULL) {
        fprintf(stderr, "bench: SQLite: no library given: missing\n");
    } else if (engine_load(&peers->bench.engine[1], "sqlite", sqlite)) {
        peers->kind[peers->kinds++] = &kv_sqlite;
    } else {
        kv_die("%s cannot be loaded", sqlite);
    }
}

int
main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--child") == 0)
        return peers_life_child(argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    const char *sqlite = NULL;
    Peers peers = {.rows = 1000000, .data_mib = 1024, .self = argv[0]};
    peers.bench.options = (Options){
        .device = "memory", .directory = "/dev/shm", .rounds = 3, .seconds = 0.5};
    const Options *options = &peers.bench.options;
    bool is_good = true;
    for (int i = 1; i < argc; i += 2)
        is_good = is_good && i + 1 < argc && read_option(&peers, argv[i], argv[i + 1], &sqlite);
    if (!is_good || options->rounds < 1 || options->rounds > ROUNDS_MAX || peers.rows < 10000 ||
        peers.data_mib < 4) {
        fprintf(stderr, "store_peers: see the head of bench/store/peers.c\n");
        return 2;
    }
    peers.pool_mib = MAX_OF(peers.rows * 400 >> 20, (u64)64);
    find_kinds(&peers, sqlite);
    if (options->json != NULL) peers.bench.json = fopen(options->json, "a");
    printf("# store: %llu rows, device %s\n", (unsigned long long)peers.rows, options->device);
    if (strcmp(options->device, "memory") == 0) {
        peers_memory_group(&peers);
        peers_pool_group(&peers);
        peers_life_group(&peers);
    } else {
        device_tell(&peers.bench);
        peers_durable_group(&peers);
        device_tell(&peers.bench);
    }
    if (peers.bench.json != NULL) fclose(peers.bench.json);
    return peers.bench.failed > 0;
}
