/*
 * pool_disk.h -- a "disk" of copies in memory behind a pool, for tests.
 */
#pragma once

#include "rt/task.h"
#include "store/pool/pool.h"
#include "store_kit.h"

#define DISK_PAGES 4096u
#define PLACES     8192u

typedef struct Disk {
    RtU32 busy;         /* A spin: disk_placed() may not park. */
    u8 *places[PLACES]; /* Copies; NULL: free. */
    u64 place_of[DISK_PAGES + 1];
    u32 page_bytes;
    bool words_equal; /* Every page holds one number in all its words. */
    u64 free_hint;
    Rng rng;
    u32 fail_one_in; /* 0: never. */
} Disk;

static inline void
disk_lock(Disk *disk)
{
    u32 rounds = 0;
    while (rt_exchange(&disk->busy, 1) != 0) {
        rt_spin(&rounds);
    }
}

static inline void
disk_unlock(Disk *disk)
{
    rt_store_release(&disk->busy, 0);
}

static inline bool
fails(Disk *disk)
{
    return disk->fail_one_in != 0 && rng_below(&disk->rng, disk->fail_one_in) == 0;
}

static inline Err
disk_load(void *arg, u32 page_id, u8 *bytes)
{
    Disk *disk = (Disk *)arg;
    disk_lock(disk);
    Err err = fails(disk) ? ERR_IO_READ : OK;
    if (err == OK) {
        ASSERT(disk->places[disk->place_of[page_id]] != NULL);
        memcpy(bytes, disk->places[disk->place_of[page_id]], disk->page_bytes);
    }
    disk_unlock(disk);
    return err;
}

static inline Err
disk_write(void *arg, u32 page_id, u8 *bytes, u64 *place_out)
{
    Disk *disk = (Disk *)arg;
    (void)page_id;
    for (u32 i = 1; disk->words_equal && i < disk->page_bytes / 8; i++) {
        ASSERT(load_u64(bytes + 8 * i) == load_u64(bytes)); /* No torn copy. */
    }
    disk_lock(disk);
    Err err = fails(disk) ? ERR_FULL : OK;
    u64 place = disk->free_hint;
    while (err == OK && (place == 0 || disk->places[place] != NULL)) {
        place = (place + 1) % PLACES;
    }
    disk->free_hint = place;
    if (err == OK) {
        disk->places[place] = (u8 *)malloc(disk->page_bytes);
        memcpy(disk->places[place], bytes, disk->page_bytes);
        *place_out = place;
    }
    disk_unlock(disk);
    return err;
}

static inline void
disk_placed(void *arg, u32 page_id, u64 place)
{
    Disk *disk = (Disk *)arg;
    disk_lock(disk);
    u64 old = disk->place_of[page_id]; /* The page is in memory: nobody loads the old copy. */
    free(disk->places[old]);
    disk->places[old] = NULL;
    disk->place_of[page_id] = place;
    disk_unlock(disk);
}

static inline void
disk_discarded(void *arg, u32 page_id, u64 place)
{
    Disk *disk = (Disk *)arg;
    (void)page_id;
    disk_lock(disk);
    free(disk->places[place]);
    disk->places[place] = NULL;
    disk_unlock(disk);
}

static inline void
disk_sweep(Disk *disk)
{
    for (u32 i = 0; i < PLACES; i++) {
        bool used = false;
        for (u32 k = 0; k <= DISK_PAGES; k++) {
            used = used || (i != 0 && disk->place_of[k] == i);
        }
        if (used) continue;
        free(disk->places[i]);
        disk->places[i] = NULL;
    }
}

static inline void
disk_end(Disk *disk)
{
    memset(disk->place_of, 0, sizeof(disk->place_of));
    disk_sweep(disk);
    free(disk);
}

static inline PoolClient
client_of(Disk *disk)
{
    return (PoolClient){.arg = disk,
                        .load = disk_load,
                        .write = disk_write,
                        .placed = disk_placed,
                        .discarded = disk_discarded};
}

static inline Disk *
disk_new(u32 page_bytes, u64 seed)
{
    Disk *disk = (Disk *)calloc(1, sizeof(Disk));
    assert_non_null(disk);
    disk->page_bytes = page_bytes;
    rng_seed(&disk->rng, seed);
    return disk;
}
