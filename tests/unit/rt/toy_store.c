/*
 * toy_store.c -- see toy_store.h.
 */
#include "toy_store.h"

#include <stdio.h>

#include "rt/file.h"
#include "rt/lock.h"
#include "rt/loop.h"
#include "rt/net.h"
#include "rt/sim/sim.h"
#include "rt/time.h"

#define PENDING_MAX  64
#define WAIT_STEP_NS (20 * RT_NS_PER_MS)

typedef struct Record {
    u64 number;           /* 0: the snapshot. */
    u64 values[TOY_KEYS]; /* Snapshot: all; else [0] key, last the value's complement. */
    u64 checksum;
} Record; /* Not a power of two, so that some records cross sectors. */

typedef struct Toy {
    RtDir *dir;
    RtFile *log;
    u64 generation, log_end;

    RtMutex lock; /* Protects the log's buffer and its positions. */
    RtCond durable_moved;
    Record pending[PENDING_MAX];
    u32 pending_count;
    u64 number_next, number_durable;
    bool is_leading;
    Err broken; /* Fail-stop. */

    RtMutex table_lock;      /* Protects writes of `values`; after `lock` where both are held. */
    RtU64 version;           /* Odd while `values` change. */
    u64 values[2][TOY_KEYS]; /* Twice, so that a torn read shows. */

    RtListener *listener;
    RtU32 connections;
} Toy;

static u64
record_checksum(const Record *record)
{
    return checksum64(record, offsetof(Record, checksum), 42);
}

static bool
record_is_whole(const Record *record, u64 number)
{
    if (PLANT(TOY_PLANT_TORN_RECORD)) return record->number == number;
    return record->number == number && record->checksum == record_checksum(record);
}

/* Counters only rise: a late request of a lost connection changes nothing. */
static void
values_set(Toy *toy, u64 key, u64 value)
{
    if (value <= toy->values[0][key]) return;
    rt_fetch_add(&toy->version, 1);
    rt_yield_point();
    toy->values[0][key] = value;
    rt_yield_point();
    toy->values[1][key] = value;
    rt_fetch_add(&toy->version, 1);
}

/* Optimistic: read, then see that nothing changed meanwhile. */
static u64
values_get(Toy *toy, u64 key)
{
    u32 rounds = 0;
    for (;;) {
        u64 before = rt_load_acquire(&toy->version);
        u64 one = __atomic_load_n(&toy->values[0][key], __ATOMIC_RELAXED);
        rt_yield_point();
        u64 two = __atomic_load_n(&toy->values[1][key], __ATOMIC_RELAXED);
        rt_fence();
        bool is_stable = before % 2 == 0 && rt_load_relaxed(&toy->version) == before;
        if (is_stable || PLANT(TOY_PLANT_NO_VALIDATE)) {
            if (one != two)
                rt_sim_fail("a torn read was believed: %llu, %llu", (unsigned long long)one,
                            (unsigned long long)two);
            return one;
        }
        rt_spin(&rounds);
    }
}

typedef struct WriteJob {
    Toy *toy;
    const Record *records;
    u32 count;
    Err err;
} WriteJob;

static void
write_records(void *arg)
{
    WriteJob *job = arg;
    job->err = rt_file_write(job->toy->log, job->toy->log_end, job->records,
                             job->count * sizeof(Record), NULL);
}

/* Write and sync; [parks] with no lock held. */
static Err
log_force(Toy *toy, const Record *records, u32 count)
{
    WriteJob job = {toy, records, count, OK};
    if (PLANT(TOY_PLANT_SYNC_OVERTAKES)) {
        RtGroup group = {0};
        if (rt_group_spawn(&group, write_records, &job) != OK) write_records(&job);
        Err err = rt_file_sync(toy->log, NULL);
        rt_group_wait(&group);
        return job.err != OK ? job.err : err;
    }
    write_records(&job);
    if (job.err != OK) return job.err;
    if (PLANT(TOY_PLANT_ACK_EARLY)) return OK;
    Err err = rt_file_sync(toy->log, NULL);
    if (err != OK && PLANT(TOY_PLANT_SYNC_RETRY)) err = rt_file_sync(toy->log, NULL);
    return err;
}

/* Called with the lock held, by the leader; releases it while it works. */
static void
lead(Toy *toy)
{
    Record records[PENDING_MAX];
    u32 count = toy->pending_count;
    u64 last = toy->number_next - 1;
    memcpy(records, toy->pending, count * sizeof(Record));
    toy->pending_count = 0;
    toy->is_leading = true;
    rt_mutex_unlock(&toy->lock);
    Err err = log_force(toy, records, count);
    rt_mutex_lock(&toy->lock);
    toy->is_leading = false;
    if (err != OK)
        toy->broken = err;
    else {
        toy->log_end += count * sizeof(Record);
        toy->number_durable = last;
    }
    if (PLANT(TOY_PLANT_ONE_WAKE))
        rt_cond_signal(&toy->durable_moved);
    else
        rt_cond_broadcast(&toy->durable_moved, &toy->lock);
}

static Err
put(Toy *toy, u64 key, u64 value)
{
    bool is_backwards = PLANT(TOY_PLANT_LOCK_ORDER) && value % 4 == 3;
    if (is_backwards) rt_mutex_lock(&toy->table_lock);
    rt_mutex_lock(&toy->lock);
    while (toy->pending_count == PENDING_MAX && toy->broken == OK)
        rt_cond_wait(&toy->durable_moved, &toy->lock);
    if (toy->broken != OK) {
        if (!PLANT(TOY_PLANT_FORGET_UNLOCK)) rt_mutex_unlock(&toy->lock);
        if (is_backwards) rt_mutex_unlock(&toy->table_lock);
        return toy->broken;
    }
    u64 number = toy->number_next++;
    Record *record = &toy->pending[toy->pending_count++];
    *record = (Record){.number = number, .values = {key, [TOY_KEYS - 1] = ~value}};
    record->checksum = record_checksum(record);
    if (!is_backwards) rt_mutex_lock(&toy->table_lock);
    values_set(toy, key, value);
    rt_mutex_unlock(&toy->table_lock);
    while (toy->number_durable < number && toy->broken == OK) {
        if (!toy->is_leading)
            lead(toy);
        else
            rt_cond_wait(&toy->durable_moved, &toy->lock);
    }
    Err err = toy->number_durable >= number ? OK : toy->broken;
    rt_mutex_unlock(&toy->lock);
    return err;
}

/* What was read may not be durable yet; nobody may see it before. */
static Err
wait_durable(Toy *toy)
{
    rt_mutex_lock(&toy->lock);
    u64 number = toy->number_next - 1;
    while (toy->number_durable < number && toy->broken == OK) {
        if (!toy->is_leading)
            lead(toy);
        else if (rt_cond_wait_until(&toy->durable_moved, &toy->lock,
                                    rt_deadline_after(WAIT_STEP_NS)) == ERR_INTERRUPT)
            break;
    }
    Err err = toy->number_durable >= number ? OK : ERR_BUSY;
    rt_mutex_unlock(&toy->lock);
    return err;
}

static void
generation_name(u64 generation, char *name, size_t bytes)
{
    snprintf(name, bytes, "log.%06llu", (unsigned long long)generation);
}

typedef struct Newest {
    u64 generations[32];
    u32 count;
} Newest;

static Err
note_generation(void *arg, const char *name)
{
    Newest *newest = arg;
    unsigned long long generation;
    if (sscanf(name, "log.%llu", &generation) == 1 && newest->count < 32)
        newest->generations[newest->count++] = generation;
    return OK;
}

/* Replay one generation; ERR_CORRUPT when its snapshot is not whole. */
static Err
replay(Toy *toy, u64 generation)
{
    char name[32];
    RtFile *file;
    Record record = {0};
    u64 at = 0;
    generation_name(generation, name, sizeof(name));
    Err err = rt_file_open(toy->dir, name, RT_FILE_READ | RT_FILE_WRITE, &file, NULL);
    if (err != OK) return err;
    for (u64 number = 0;; number++) {
        size_t got;
        err = rt_file_read(file, at, &record, sizeof(record), &got, NULL);
        if (err != OK) break;
        if (got < sizeof(record) || !record_is_whole(&record, number)) {
            err = number == 0 ? ERR_CORRUPT : OK;
            break;
        }
        for (u32 k = 0; k < TOY_KEYS && number == 0; k++)
            values_set(toy, k, record.values[k]);
        if (number > 0 && record.values[0] < TOY_KEYS)
            values_set(toy, record.values[0], ~record.values[TOY_KEYS - 1]);
        at += sizeof(record);
        toy->number_next = number + 1;
    }
    if (err == OK && PLANT(TOY_PLANT_NO_RECOVERY_SYNC)) {
        toy->log = file;
        toy->log_end = at;
        toy->generation = generation;
        return OK;
    }
    rt_file_close(file);
    return err;
}

static Err
generation_start(Toy *toy, u64 generation)
{
    char name[32];
    Record snapshot = {0};
    u32 flags = RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE | RT_FILE_TRUNCATE;
    memcpy(snapshot.values, toy->values[0], sizeof(snapshot.values));
    snapshot.checksum = record_checksum(&snapshot);
    generation_name(generation, name, sizeof(name));
    Err err = rt_file_open(toy->dir, "log.tmp", flags, &toy->log, NULL);
    if (err != OK) return err;
    err = rt_file_own(toy->log, true, NULL, NULL);
    if (err == OK) err = rt_file_write(toy->log, 0, &snapshot, sizeof(snapshot), NULL);
    if (err == OK && !PLANT(TOY_PLANT_RENAME_FIRST)) err = rt_file_sync(toy->log, NULL);
    if (err == OK) err = rt_file_rename(toy->dir, "log.tmp", name, NULL);
    if (err == OK && !PLANT(TOY_PLANT_NO_DIR_SYNC)) err = rt_dir_sync(toy->dir, NULL);
    toy->generation = generation;
    toy->log_end = sizeof(snapshot);
    toy->number_next = 1;
    return err;
}

static Err
toy_open(Toy *toy)
{
    Newest newest = {0};
    Err err = rt_dir_create("/db", NULL);
    if (err != OK && err != ERR_EXISTS) return err;
    err = rt_dir_open("/db", &toy->dir, NULL);
    if (err != OK) return err;
    RtDir *root;
    err = rt_dir_open("/", &root, NULL);
    if (err != OK) return err;
    err = rt_dir_sync(root, NULL); /* The name "db". */
    rt_dir_close(root);
    if (err == OK) err = rt_dir_list(toy->dir, note_generation, &newest, NULL);
    u64 best = 0;
    if (err != OK) return err;
    while (newest.count > 0) {
        best = newest.generations[newest.count - 1];
        err = replay(toy, best);
        if (err == OK) break;
        if (err != ERR_CORRUPT) return err;
        newest.count--;
    }
    if (toy->log == NULL) err = generation_start(toy, best + 1);
    toy->number_durable = toy->number_next - 1;
    /* The older ones are of no use from here on. */
    for (u32 i = 0; i < newest.count && err == OK && toy->generation > best; i++) {
        char name[32];
        generation_name(newest.generations[i], name, sizeof(name));
        err = rt_file_unlink(toy->dir, name, NULL);
    }
    return err;
}

static Err
read_request(RtSocket *socket, ToyRequest *request)
{
    size_t total = 0, got;
    while (total < sizeof(*request)) {
        Err err = rt_socket_read(socket, (u8 *)request + total, sizeof(*request) - total,
                                 rt_deadline_after(60 * RT_NS_PER_S), &got, NULL);
        if (err != OK) return err;
        if (got == 0) return ERR_CLOSED;
        total += got;
    }
    return OK;
}

typedef struct Connection {
    Toy *toy;
    RtSocket *socket;
} Connection;

/* Bugs that only a perturbed replay shows: they change timing by memory contents or addresses. */
static void
unreproducible(void)
{
    if (PLANT(TOY_PLANT_UNINITIALISED)) {
        u8 *bytes = mem_alloc(64);
        if (bytes != NULL && bytes[17] != 0) (void)!rt_sleep_ns(1000);
        mem_free(bytes);
    }
    if (PLANT(TOY_PLANT_ADDRESS_ORDER)) {
        void *one = mem_alloc(24), *two = mem_alloc(200);
        if ((uintptr_t)one % 4096 < (uintptr_t)two % 4096) (void)!rt_sleep_ns(1000);
        mem_free(one);
        mem_free(two);
    }
}

static void
serve(void *arg)
{
    Connection connection = *(Connection *)arg;
    Toy *toy = connection.toy;
    ToyRequest request;
    mem_free(arg);
    while (read_request(connection.socket, &request) == OK) {
        ToyReply reply = {0};
        unreproducible();
        if (request.op == TOY_STOP) {
            rt_listener_shutdown(toy->listener);
            break;
        }
        if (request.key >= TOY_KEYS) break;
        if (request.op == TOY_PUT)
            reply.is_ok = put(toy, request.key, request.value) == OK;
        else {
            reply.value = values_get(toy, request.key);
            reply.is_ok = wait_durable(toy) == OK;
        }
        if (!reply.is_ok) rt_listener_shutdown(toy->listener);
        if (rt_socket_write(connection.socket, &reply, sizeof(reply), RT_FOREVER, NULL) != OK)
            break;
    }
    rt_socket_close(connection.socket);
}

static void
accept_all(Toy *toy)
{
    for (;;) {
        RtSocket *socket;
        Err err = rt_accept(toy->listener, RT_FOREVER, &socket, NULL);
        if (err == ERR_LIMIT) {
            if (rt_sleep_ns(100 * RT_NS_PER_MS) != OK) return;
            continue;
        }
        if (err != OK) return;
        Connection *connection = MEM_NEW(Connection);
        if (connection != NULL) *connection = (Connection){toy, socket};
        if (connection == NULL || rt_spawn(RT_LOOP_ANY, serve, connection, "serve") != OK) {
            mem_free(connection);
            rt_socket_close(socket);
        }
    }
}

void
toy_server(void *arg)
{
    (void)arg;
    Toy *toy = MEM_NEW(Toy);
    if (toy == NULL) return;
    Err err = toy_open(toy);
    if (err == OK) err = rt_listen(TOY_ADDRESS, 0, &toy->listener, NULL);
    rt_sim_trace("opened", (u64)err);
    if (err == OK) accept_all(toy);
    rt_loops_stop(200 * RT_NS_PER_MS);
    rt_listener_close(toy->listener);
    rt_file_close(toy->log);
    rt_dir_close(toy->dir);
    mem_free(toy);
}
