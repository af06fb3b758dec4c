/*
 * peers_memory.c -- everything in memory, one thread: point reads, ordered scans, ascending
 * inserts; and how full ascending inserts leave the pages.
 */
#include <stdlib.h>
#include <string.h>

#include "peers.h"
#include "store/store.h"

#define VALUE_BYTES 100
#define APPEND_EACH 1000 /* Rows a transaction. */
#define FILL_LEAST  0.92

/* Seconds of processor time an operation. */
static double
read_some(const KvKind *kind, Kv *kv, u64 rows, u64 times, u64 seed)
{
    KvSession *session = kind->session(kv, KV_WAIT_TIMEOUT);
    kind->begin(session, false);
    double began = thread_s();
    for (u64 i = 0; i < times; i++) {
        u64 key = random_next(&seed) % rows;
        if (kind->get(session, key) != 'a' + key % 26)
            kv_die("%s: key %llu has another row's value", kind->name, (unsigned long long)key);
    }
    double took = thread_s() - began;
    kind->commit(session);
    kind->session_end(session);
    return took / (double)times;
}

static double
scan_all(const KvKind *kind, Kv *kv, u64 rows, u64 *sum_out)
{
    *sum_out = 0;
    KvSession *session = kind->session(kv, KV_WAIT_TIMEOUT);
    kind->begin(session, false);
    double began = thread_s();
    u64 found = kind->scan(session, sum_out);
    double took = thread_s() - began;
    kind->commit(session);
    kind->session_end(session);
    if (found != rows) kv_die("%s: a scan has %llu rows", kind->name, (unsigned long long)found);
    return took / (double)rows;
}

static void
read_rows(Peers *peers)
{
    static const double read_goal[] = {0, 1, 3}, scan_goal[] = {0, 1, 0};
    Kv *kv[PEERS_MAX];
    PeerPlace place[PEERS_MAX];
    Row read[PEERS_MAX], scan[PEERS_MAX];
    for (u32 i = 0; i < peers->kinds; i++) {
        u32 goal = strcmp(peers->kind[i]->name, "sqlite") == 0 ? 2 : i;
        place[i] = peers_place(peers);
        kv[i] = peers_open(peers, i, &place[i], peers->pool_mib << 20, false);
        peers_fill(peers->kind[i], kv[i], peers->rows, VALUE_BYTES);
        read[i] = peers_row(peers, "read", i, "us", false, read_goal[goal]);
        scan[i] = peers_row(peers, "scan", i, "ns a row", false, scan_goal[goal]);
    }
    u64 sum = 0, other;
    for (int round = 0; round < peers->bench.options.rounds; round++) {
        double read_s[PEERS_MAX], scan_s[PEERS_MAX];
        for (u32 i = 0; i < peers->kinds; i++) {
            u64 times = MIN_OF(peers->rows, (u64)1000000);
            read_s[i] = read_some(peers->kind[i], kv[i], peers->rows, times, 77 + (u64)round);
            scan_s[i] = scan_all(peers->kind[i], kv[i], peers->rows, i == 0 ? &sum : &other);
            if (i > 0 && sum != other) bench_fail(&peers->bench, "the scans differ");
            row_add(&read[i], read_s[0] * 1e6, read_s[i] * 1e6);
            row_add(&scan[i], scan_s[0] * 1e9, scan_s[i] * 1e9);
        }
    }
    for (u32 i = peers->kinds > 1; i < peers->kinds; i++) {
        row_show(&peers->bench, &read[i]);
        row_show(&peers->bench, &scan[i]);
    }
    for (u32 i = 0; i < peers->kinds; i++) {
        peers->kind[i]->close(kv[i]);
        peers_place_end(&place[i]);
    }
}

/* Seconds a row; `told`: the engine is told that the rows ascend. */
static double
append_some(const KvKind *kind, Kv *kv, u64 rows, bool told)
{
    char value[VALUE_BYTES];
    memset(value, 'v', sizeof(value));
    KvSession *session = kind->session(kv, KV_WAIT_TIMEOUT);
    double began = now_s();
    for (u64 at = 0; at < rows; at += APPEND_EACH) {
        kind->begin(session, true);
        for (u64 i = at; i < at + APPEND_EACH; i++)
            (told ? kind->append : kind->insert)(session, i,
                                                 (Slice){(const u8 *)value, sizeof(value)});
        kind->commit(session);
    }
    double took = now_s() - began;
    kind->session_end(session);
    return took / (double)rows;
}

static void
append_rows(Peers *peers)
{
    Row row[PEERS_MAX], hinted = {.rounds = 0};
    Row fill = peers_row(peers, "fill", 0, "of a leaf", true, 0);
    for (u32 i = 0; i < peers->kinds; i++) {
        bool is_lmdb = strcmp(peers->kind[i]->name, "lmdb") == 0;
        row[i] = peers_row(peers, "append", i, "us a row", false, is_lmdb ? 1.5 : 0);
        if (is_lmdb) hinted = peers_row(peers, "append_hinted", i, "us a row", false, 0);
    }
    u64 rows = peers->rows / APPEND_EACH * APPEND_EACH;
    for (int round = 0; round < peers->bench.options.rounds; round++) {
        double took[PEERS_MAX];
        for (u32 i = 0; i < peers->kinds; i++) {
            bool has_hint = peers->kind[i]->append != peers->kind[i]->insert;
            PeerPlace place = peers_place(peers);
            Kv *kv = peers_open(peers, i, &place, peers->pool_mib << 20, false);
            took[i] = append_some(peers->kind[i], kv, rows, false);
            peers->kind[i]->close(kv);
            if (i == 0) {
                double full, each;
                peers_leaves(&place, &full, &each);
                row_add(&fill, full, 0);
            }
            peers_place_end(&place);
            row_add(&row[i], took[0] * 1e6, took[i] * 1e6);
            if (!has_hint) continue;
            place = peers_place(peers);
            kv = peers_open(peers, i, &place, peers->pool_mib << 20, false);
            row_add(&hinted, took[0] * 1e6, append_some(peers->kind[i], kv, rows, true) * 1e6);
            peers->kind[i]->close(kv);
            peers_place_end(&place);
        }
    }
    for (u32 i = peers->kinds > 1; i < peers->kinds; i++)
        row_show(&peers->bench, &row[i]);
    row_show(&peers->bench, &hinted);
    peers_show_limit(peers, &fill, FILL_LEAST);
}

/* The number before `word` in a text; 0: there is none. */
static double
number_before(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    while (at != NULL && at > text && (at[-1] == ' ' || (at[-1] >= '0' && at[-1] <= '9')))
        at--;
    return at == NULL ? 0 : atof(at);
}

void
peers_leaves(const PeerPlace *place, double *fill_out, double *rows_each_out)
{
    char path[4200];
    Buf text = {0};
    double free_bytes = 0, rows = 0, pages = 0, page_bytes = 0;
    snprintf(path, sizeof(path), "%s/weft.db", place->path);
    for (u32 page = 0; page < 1u << 31; page = page * 11 / 10 + 1) {
        buf_clear(&text);
        Err err = store_dump_page(path, page, false, &text, NULL);
        if (err == ERR_NOTFOUND && page > 100) break;
        if (err == ERR_NOTFOUND) continue;
        if (err != OK || buf_append(&text, "", 1) != OK) kv_die("dump: %s", err_text(err));
        const char *said = (const char *)text.p;
        if (page == 0) page_bytes = number_before(strstr(said, "pages of "), " bytes");
        /* Not the last, which is still being filled. */
        if (strstr(said, "a leaf of tree 2,") == NULL || strstr(said, "right sibling") == NULL)
            continue;
        free_bytes += number_before(said, "bytes free");
        rows += number_before(said, "entries;") + number_before(said, "entries, ");
        pages++;
    }
    buf_free(&text);
    if (pages == 0 || page_bytes == 0) kv_die("%s: no leaves are found", path);
    *fill_out = 1 - free_bytes / (pages * page_bytes);
    *rows_each_out = rows / pages;
}

void
peers_memory_group(Peers *peers)
{
    if (peers_wants(peers, "read") || peers_wants(peers, "scan")) read_rows(peers);
    if (peers_wants(peers, "append") || peers_wants(peers, "fill")) append_rows(peers);
}
