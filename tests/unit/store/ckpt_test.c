/*
 * ckpt_test.c -- checkpoints of a tree of pages in the simulator, with crashes at every kind of
 * point.
 *
 * Method: writers put and delete keys in one tree, through a pool far too small for it, join
 * emptied leaves, and note in the driver's memory what they did under which epoch.  A keeper makes
 * checkpoints.  The process is killed, loses power, or ends; disks fail as the seed says.  The next
 * life opens the file: the superblock names a cut's epoch, and the tree must be exactly what the
 * operations up to that epoch made of it; no checkpoint that was acknowledged may be missing; no
 * page and no slot is lost or named twice.
 *
 *   ckpt_test                some seeds
 *   ckpt_test --seed N [-v]  one seed, twice, under other addresses
 *   ckpt_test --seeds A B    all from A to B - 1
 *   ckpt_test --plants       every planted bug must be found by some seed
 */
#include <stdio.h>
#include <stdlib.h>

#include "rt/sim/sim.h"
#include "rt/task.h"
#include "rt/time.h"
#include "store/ckpt/ckpt_impl.h"
#include "unit/cmocka_all.h"

#define WRITERS    3u
#define KEYS       400u
#define NOTES_MAX  40000u
#define LIVES_MAX  5u
#define PAGE_BYTES 4096u
#define TREE_ID    7u
#define STORE_ID   0x1234567812345678ull
#define FAULTS                                                                             \
    (RT_SIM_SHORT | RT_SIM_SLOW | RT_SIM_EIO_READ | RT_SIM_EIO_WRITE | RT_SIM_SYNC_FAILS | \
     RT_SIM_NO_SPACE | RT_SIM_NO_MEMORY)

typedef struct Note {
    u64 epoch;
    u32 key, version; /* 0: deleted. */
} Note;

typedef struct World {
    RtSimHost *host;
    Note notes[NOTES_MAX];
    u32 note_count;
    u32 base[KEYS];   /* As this life found it. */
    u64 acknowledged; /* Epoch of the last checkpoint that was. */
    u32 version;
    u32 work; /* Of each writer in a life. */
    u32 frames;
    u32 opens, checkpoints;
    RtU32 writers_left;
    /* Of a life. */
    Pool *pool;
    PoolFile *pool_file;
    Ckpt *ckpt;
    Btree tree;
    RtRwLock gate; /* Exclusive: no operation runs. */
} World;

typedef struct Seat {
    World *world;
    u32 number;
} Seat;

static bool
is_excused(Err err)
{
    switch (err) {
    case ERR_NOMEM:
    case ERR_IO:
    case ERR_IO_READ:
    case ERR_IO_WRITE:
    case ERR_IO_SYNC:
    case ERR_FULL:
    case ERR_CANTOPEN:
    case ERR_LIMIT: return true;
    default: return false;
    }
}

static Slice
key_of(u32 number, u8 bytes[64])
{
    int count = snprintf((char *)bytes, 64, "key/%06u/%.*s", number, (int)(number * 7 % 30),
                         "..............................");
    return (Slice){bytes, (size_t)count};
}

static u32
value_bytes_of(u32 number, u32 version)
{
    return 8 + (number * 13 + version * 31) % 300;
}

static void
note(World *world, u64 epoch, u32 key, u32 version)
{
    if (world->note_count < NOTES_MAX) {
        world->notes[world->note_count++] = (Note){epoch, key, version};
    }
}

/* ---- tasks ---- */

static Err
put(World *world, u32 number, u8 *scratch)
{
    u8 key_bytes[64], value[512];
    Slice key = key_of(number, key_bytes);
    u32 version = ++world->version;
    memset(value, (int)version, sizeof(value));
    store_u32(value, number);
    store_u32(value + 4, version);
    Slice slice = {value, value_bytes_of(number, version)};
    PageOps *ops = ckpt_ops(world->ckpt);
    PageView view;
    page_op_throttle(ops);
    Err err = btree_leaf_latch(&world->tree, key, btree_need_bytes(key, slice), &view);
    if (err != OK) return err;
    PageOp op;
    page_op_begin(ops, &op);
    page_op_touch(&op, &view);
    Node node = btree_node(&world->tree, &view);
    bool exact;
    u32 slot = node_find(node, key, &exact);
    bool done = exact ? node_replace(node, slot, slice, 0, 0, scratch)
                      : node_insert(node, slot, key, slice, 0, 0, scratch);
    if (!done) rt_sim_fail("no room in a leaf that was split for it");
    note(world, op.epoch, number, version);
    pool_unlatch(&view, true, true);
    page_op_end(&op);
    return OK;
}

static Err
erase(World *world, u32 number)
{
    u8 key_bytes[64];
    Slice key = key_of(number, key_bytes);
    PageOps *ops = ckpt_ops(world->ckpt);
    PageView view;
    page_op_throttle(ops);
    Err err = btree_leaf_latch(&world->tree, key, 0, &view);
    if (err != OK) return err;
    PageOp op;
    page_op_begin(ops, &op);
    Node node = btree_node(&world->tree, &view);
    bool exact;
    u32 slot = node_find(node, key, &exact);
    if (exact) {
        page_op_touch(&op, &view);
        node_remove(node, slot);
        note(world, op.epoch, number, 0);
    }
    bool is_empty = node_head(node)->count == 0;
    pool_unlatch(&view, exact, exact);
    page_op_end(&op);
    return is_empty ? btree_merge_empty(&world->tree, key) : OK;
}

static void
writer_main(void *arg)
{
    World *world = ((Seat *)arg)->world;
    u8 *scratch = (u8 *)mem_alloc_aligned(64, PAGE_BYTES);
    u32 from = 0, span = KEYS;
    for (u32 i = 0; i < world->work && scratch != NULL; i++) {
        if (rt_sim_draw(40) == 0) { /* Now and then on one stretch: leaves fill, or empty. */
            span = 1 + (u32)rt_sim_draw(KEYS);
            from = (u32)rt_sim_draw(KEYS - span + 1);
        }
        u32 number = from + (u32)rt_sim_draw(span);
        rt_rwlock_lock_shared(&world->gate);
        bool puts = rt_sim_draw(100) < (from % 2 == 0 ? 80 : 25);
        Err err = puts ? put(world, number, scratch) : erase(world, number);
        rt_rwlock_unlock_shared(&world->gate);
        if (err != OK && !is_excused(err)) rt_sim_fail("write: %s", err_name(err));
        if (rt_sim_draw(50) == 0) {
            rt_rwlock_lock(&world->gate);
            btree_reclaim(&world->tree);
            rt_rwlock_unlock(&world->gate);
        }
    }
    mem_free(scratch);
    rt_fetch_sub(&world->writers_left, 1);
}

/* ---- checkpoints ---- */

static Err
client_cut(void *arg, CkptCut *cut_out, ErrMsg *msg)
{
    World *world = (World *)arg;
    (void)msg;
    *cut_out = (CkptCut){.tree_next = TREE_ID + 1, .ts = 5, .lsn = 4096, .oldest_lsn = 4096};
    ckpt_cut_here(world->ckpt);
    return OK;
}

static Err
client_describe(void *arg, CkptStream *stream, ErrMsg *msg)
{
    World *world = (World *)arg;
    u32 fill = (u32)rt_sim_draw(3) * 3000; /* Chains of one and of more pages. */
    Err err = ckpt_stream_put(stream, &world->tree.root, 4, msg);
    if (err == OK) err = ckpt_stream_put(stream, &fill, 4, msg);
    for (u32 i = 0; i < fill && err == OK; i++) {
        err = ckpt_stream_put(stream, &i, 3, msg);
    }
    return err;
}

static Err
client_log_durable(void *arg, u64 lsn, ErrMsg *msg)
{
    (void)arg;
    (void)lsn;
    (void)msg;
    return OK;
}

static void
client_ended(void *arg, bool is_complete)
{
    (void)arg;
    (void)is_complete;
}

static void
checkpoint(World *world)
{
    CkptClient client = {world, client_cut, client_describe, client_log_durable, client_ended};
    ErrMsg msg = {0};
    Err err = ckpt_run(world->ckpt, &client, 0, &msg);
    if (err != OK && !is_excused(err)) {
        rt_sim_fail("checkpoint: %s: %s", err_name(err), err_message(&msg));
    }
    err_clear(&msg);
    if (err == OK) world->acknowledged = ckpt_super(world->ckpt)->epoch;
    if (err == OK) world->checkpoints++;
}

static void
keeper_main(void *arg)
{
    World *world = ((Seat *)arg)->world;
    while (rt_load_acquire(&world->writers_left) > 0) {
        checkpoint(world);
        if (rt_sim_draw(4) == 0) ckpt_trim(world->ckpt);
        if (rt_sleep_ns(1 + rt_sim_draw(10 * RT_NS_PER_MS)) != OK) break;
    }
}

/* ---- looking ---- */

/* Latch a page, whatever the disk does meanwhile. */
static Node
latch_certainly(World *world, u32 page_id, PageView *view)
{
    Err err;
    while ((err = pool_latch(world->pool_file, page_id, view)) != OK) {
        if (!is_excused(err)) rt_sim_fail("page %u: %s", page_id, err_name(err));
    }
    return btree_node(&world->tree, view);
}

/* All pages of the tree: each level from its left end along the right links. */
static u32
pages_reached(World *world)
{
    u32 pages = 0;
    u32 first = world->tree.root;
    while (first != NODE_PAGE_NONE) {
        u32 below = NODE_PAGE_NONE;
        for (u32 page_id = first, right; page_id != NODE_PAGE_NONE; page_id = right) {
            PageView view;
            Node node = latch_certainly(world, page_id, &view);
            right = node_head(node)->right;
            if (page_id == first && node_head(node)->level > 0) below = node_head(node)->child_low;
            pool_unlatch(&view, false, false);
            pages++;
        }
        first = below;
    }
    return pages;
}

static u32
pages_mapped(const Ckpt *ckpt)
{
    u32 pages = 0;
    for (u32 id = 1; id < ckpt->pages_end; id++) {
        pages += page_map_get(&ckpt->map, id) != 0;
    }
    return pages;
}

static void
check_value(World *world, u32 number, u32 wanted)
{
    u8 key_bytes[64];
    bool found;
    NodeSlot slot;
    Buf value = {0};
    Err err;
    while ((err = btree_get(&world->tree, key_of(number, key_bytes), &found, &slot, &value)) !=
           OK) {
        if (!is_excused(err)) rt_sim_fail("get: %s", err_name(err));
    }
    u32 version = found && value.bytes >= 8 ? load_u32(value.p + 4) : 0;
    bool fits = version == wanted && (!found || (load_u32(value.p) == number &&
                                                 value.bytes == value_bytes_of(number, version)));
    buf_free(&value);
    if (!fits) rt_sim_fail("key %u has version %u, should have %u", number, version, wanted);
}

/* The tree must be as the notes up to the superblock's epoch say. */
static void
judge(World *world)
{
    u64 epoch = ckpt_super(world->ckpt)->epoch;
    if (epoch < world->acknowledged) {
        rt_sim_fail("epoch %llu, acknowledged was %llu", (unsigned long long)epoch,
                    (unsigned long long)world->acknowledged);
    }
    for (u32 i = 0; i < world->note_count; i++) {
        if (world->notes[i].epoch > epoch) continue;
        world->base[world->notes[i].key] = world->notes[i].version;
    }
    world->note_count = 0;
    world->acknowledged = epoch;
    for (u32 key = 0; key < KEYS; key++) {
        check_value(world, key, world->base[key]);
    }
    const char *what;
    u64 entries;
    Err err;
    while ((err = btree_verify(&world->tree, &what, &entries)) != OK) {
        if (!is_excused(err)) rt_sim_fail("verify: %s", err_name(err));
    }
    if (what != NULL) rt_sim_fail("verify: %s", what);
    u32 reached = pages_reached(world);
    bool is_new = ckpt_super(world->ckpt)->sequence == 0; /* Its root is not written yet. */
    if (!is_new && pages_mapped(world->ckpt) != reached) {
        rt_sim_fail("%u pages are in the map, %u in the tree", pages_mapped(world->ckpt), reached);
    }
}

/* After two checkpoints with nothing in between every slot is accounted for. */
static void
check_slots(World *world)
{
    rt_rwlock_lock(&world->gate);
    btree_reclaim(&world->tree);
    rt_rwlock_unlock(&world->gate);
    checkpoint(world);
    checkpoint(world);
    Ckpt *ckpt = world->ckpt;
    u32 chunks = 0;
    for (u32 i = 0; i < ckpt->map.count; i++) {
        chunks += ckpt->map.chunks[i]->disk != 0;
    }
    u32 wanted = pages_mapped(ckpt) + chunks + ckpt->chains.count;
    if (!ckpt_has_failed(ckpt) && ckpt->space.taken != wanted) {
        rt_sim_fail("%u slots are taken, %u are named", ckpt->space.taken, wanted);
    }
}

/* ---- a life ---- */

static Err
open_file(World *world, RtFile *file, ErrMsg *msg)
{
    Super super;
    bool found, ours;
    u32 root = 0;
    Err err = super_read(file, &super, &found, &ours, msg);
    if (err != OK) return err;
    if (!found && world->acknowledged != 0) rt_sim_fail("the superblock is gone");
    err = found ? ckpt_open(file, &super, world->frames, &world->ckpt, msg)
                : ckpt_create(file, PAGE_BYTES, STORE_ID, world->frames, &world->ckpt, msg);
    if (err == OK && found) {
        CkptReader *reader;
        err = ckpt_reader_open(world->ckpt, &reader, msg);
        if (err == OK) err = ckpt_reader_get(reader, &root, 4, msg);
        ckpt_reader_close(reader);
        if (err == OK) err = super_write(file, &super, msg);
        if (err == OK) err = rt_file_sync(file, msg);
    }
    if (err == OK) err = pool_create(PAGE_BYTES, world->frames, &world->pool);
    PoolClient client = {0};
    if (err == OK) client = ckpt_pool_client(world->ckpt);
    if (err == OK) err = pool_file_open(world->pool, &client, &world->pool_file);
    if (err == OK) err = ckpt_attach(world->ckpt, world->pool_file);
    if (err != OK) return err;
    BtreePages pages = ckpt_pages(world->ckpt);
    return found ? btree_open(&world->tree, world->pool_file, &pages, TREE_ID, false, root)
                 : btree_create(&world->tree, world->pool_file, &pages, TREE_ID, false);
}

static void
close_all(World *world)
{
    btree_close(&world->tree);
    pool_file_close(world->pool_file);
    pool_free(world->pool);
    ckpt_free(world->ckpt);
    world->pool_file = NULL;
    world->pool = NULL;
    world->ckpt = NULL;
}

static void
work(World *world)
{
    rt_store(&world->writers_left, WRITERS);
    Seat seats[WRITERS + 1];
    RtThread *threads[WRITERS + 1] = {NULL};
    for (u32 i = 0; i < WRITERS + 1; i++) {
        seats[i] = (Seat){world, i};
        Err err = rt_thread_start(rt_process(), i < WRITERS ? writer_main : keeper_main, &seats[i],
                                  "task", &threads[i]);
        if (err != OK && i < WRITERS) rt_fetch_sub(&world->writers_left, 1);
    }
    for (u32 i = 0; i < WRITERS + 1; i++) {
        rt_thread_join(threads[i]);
    }
}

static void
life_main(void *arg)
{
    World *world = (World *)arg;
    ErrMsg msg = {0};
    RtDir *dir = NULL;
    RtFile *file = NULL;
    world->gate = (RtRwLock){0};
    world->tree = (Btree){0};
    world->pool_file = NULL;
    world->pool = NULL;
    world->ckpt = NULL;
    Err err = rt_dir_open("/", &dir, &msg);
    if (err == OK) {
        err = rt_file_open(dir, "t.db", RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE, &file, &msg);
    }
    if (err == OK) err = rt_dir_sync(dir, &msg);
    for (u32 tries = 0; err == OK && tries < 100; tries++) {
        /* I/O of the crashed process may still be under way. */
        err = rt_file_own(file, true, NULL, NULL);
        if (err != ERR_OWNED || rt_sleep_ns(RT_NS_PER_S) != OK) break;
        err = OK;
    }
    if (err == OK) err = open_file(world, file, &msg);
    if (err != OK && !is_excused(err)) {
        rt_sim_fail("open: %s: %s", err_name(err), err_message(&msg));
    }
    if (err == OK) {
        judge(world);
        world->opens++;
        work(world);
        if (rt_sim_faults_on() == 0) check_slots(world);
    }
    err_clear(&msg);
    close_all(world);
    rt_file_close(file);
    rt_dir_close(dir);
    rt_process_close(rt_process());
}

static void
driver(void *arg)
{
    World *world = (World *)arg;
    world->host = rt_sim_host("disk");
    world->frames = 24 + (u32)rt_sim_draw(60);
    u32 lives = 1 + (u32)rt_sim_draw(LIVES_MAX);
    for (u32 life = 0; life <= lives; life++) {
        bool last = life == lives;
        if (last) rt_sim_heal(); /* Then everything must work. */
        world->work = 20 + (u32)rt_sim_draw(1500);
        RtSimProcess *process = rt_sim_start(world->host, "life", life_main, world);
        RtSimCrash how = rt_sim_draw(2) == 0 ? RT_SIM_KILL : RT_SIM_POWER_CUT;
        u64 dice = rt_sim_draw(8);
        if (!last && dice < 5) {
            rt_sim_crash_at_io(process, 1 + rt_sim_draw(dice < 2 ? 60 : 1500), how);
        } else if (!last && dice < 7) {
            rt_sim_crash_after(process, 1 + rt_sim_draw(300 * RT_NS_PER_MS), how);
        }
        bool ended = rt_sim_wait(process);
        if (last && !ended) rt_sim_fail("the last life crashed");
    }
    if (world->opens == 0) rt_sim_fail("the file never opened");
    rt_sim_trace("epoch", world->acknowledged);
}

static bool
run_seed(u64 seed, bool proves, bool verbose, bool quiet)
{
    World *world = MEM_NEW(World);
    RtSimOptions options = {.seed = seed,
                            .faults = seed % 3 == 0 ? 0 : FAULTS,
                            .is_verbose = verbose,
                            .switches_max = 40000000};
    RtSimReport report;
    rt_sim_run(&options, driver, world, &report);
    if (proves && !report.is_failed) {
        u64 hash = report.trace_hash;
        *world = (World){0};
        options.is_perturbed = true;
        rt_sim_run(&options, driver, world, &report);
        if (!report.is_failed && report.trace_hash != hash) {
            report.is_failed = true;
            snprintf(report.failure, sizeof(report.failure), "the trace differs");
        }
    }
    if (report.is_failed && !quiet) {
        print_error("seed %llu: %s\nrepeat with: ckpt_test --seed %llu -v\n",
                    (unsigned long long)seed, report.failure, (unsigned long long)seed);
    }
    if (verbose) {
        printf("seed %llu: %llu switches, %llu I/O calls, %llu faults, %llu crashes, %u opens, "
               "%u checkpoints\n",
               (unsigned long long)seed, (unsigned long long)report.switches,
               (unsigned long long)report.io_calls, (unsigned long long)report.faults,
               (unsigned long long)report.crashes, world->opens, world->checkpoints);
    }
    rt_sim_events_free(&report.events);
    mem_free(world);
    return !report.is_failed;
}

#ifdef WEFT_CHECK
static bool
plant_is_found(u32 number, u64 seeds)
{
    bool found = false;
    plant_set(number, true);
    for (u64 seed = 1; !found && seed <= seeds; seed++) {
        found = !run_seed(seed, false, false, true);
        if (found) printf("plant %u: seed %llu\n", number, (unsigned long long)seed);
    }
    plant_set(number, false);
    if (!found) print_error("plant %u was not found\n", number);
    return found;
}

static const u32 plants[] = {
    151, /* Pages that the cut needs are not put aside. */
    157, /* Eviction puts a page from before the cut into the current map only. */
    153, /* The data is not synced before the superblock. */
    154, /* A slot is free as soon as the current map leaves it. */
    155, /* A page that is gone comes back with its image. */
    156, /* An operation does not look again whether the cut came. */
};
#endif

static void
planted_bugs_are_found(void **state)
{
    (void)state;
#ifdef WEFT_CHECK
    /* Those that few seeds find; all of them with --plants. */
    assert_true(plant_is_found(151, 100));
    assert_true(plant_is_found(154, 400));
#endif
}

static void
some_seeds(void **state)
{
    (void)state;
    const char *wanted = getenv("STORE_SEEDS");
    u64 seeds = wanted == NULL ? 6 : strtoull(wanted, NULL, 10);
    for (u64 seed = 1; seed <= seeds; seed++) {
        assert_true(run_seed(seed, seed % 10 == 0, false, false));
    }
}

int
main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "--seed") == 0) {
        return run_seed(strtoull(argv[2], NULL, 10), true, argc > 3, false) ? 0 : 1;
    }
    if (argc == 4 && strcmp(argv[1], "--seeds") == 0) {
        u64 failed = 0, to = strtoull(argv[3], NULL, 10);
        for (u64 seed = strtoull(argv[2], NULL, 10); seed < to; seed++) {
            failed += run_seed(seed, false, false, false) ? 0 : 1;
        }
        printf("%llu failed\n", (unsigned long long)failed);
        return failed == 0 ? 0 : 1;
    }
#ifdef WEFT_CHECK
    if (argc == 2 && strcmp(argv[1], "--plants") == 0) {
        u32 missed = 0;
        for (u32 i = 0; i < COUNT_OF(plants); i++) {
            missed += plant_is_found(plants[i], 1500) ? 0 : 1;
        }
        return missed == 0 ? 0 : 1;
    }
#endif
    const struct CMUnitTest tests[] = {cmocka_unit_test(some_seeds),
                                       cmocka_unit_test(planted_bugs_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
