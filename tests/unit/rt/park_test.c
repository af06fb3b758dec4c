/*
 * park_test.c -- the parking protocol survives deadlines, cancels from signal handlers, and keys
 * freed right after their unlock; the three planted bugs of the protocol are found.
 *
 * Method: the stress of the specification.  Threads lock mutexes that live in heap cells with a
 * count of users; whoever leaves a cell last frees it at once.  A timer signal cancels the running
 * thread's task every 200 us.  Under ASan a touch after the release is a report, a lost wake is a
 * hang that the watchdog turns into a failure.  `park_test N` runs N thousand acquisitions
 * (make rt-torture).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt/lock.h"
#include "rt/time.h"
#include "unit/cmocka_all.h"

#define THREADS 4
#define CELLS   3

typedef struct Cell {
    RtMutex mutex;
    u32 users; /* Guarded by the table's latch. */
    u64 plain; /* Guarded by the mutex. */
} Cell;

typedef struct Table {
    RtLatch latch;
    Cell *cells[CELLS];
    u64 rounds; /* Acquisitions, for each thread. */
    RtU64 acquired, timed_out, cancelled;
} Table;

static Cell *
cell_enter(Table *table, u32 at)
{
    rt_latch_acquire(&table->latch);
    if (table->cells[at] == NULL) table->cells[at] = MEM_NEW(Cell);
    Cell *cell = table->cells[at];
    assert_non_null(cell);
    cell->users++;
    rt_latch_release(&table->latch);
    return cell;
}

/* Leaves, and says whether the caller is the last and must free. */
static bool
cell_leave(Table *table, u32 at)
{
    rt_latch_acquire(&table->latch);
    bool is_last = --table->cells[at]->users == 0;
    if (is_last) table->cells[at] = NULL;
    rt_latch_release(&table->latch);
    return is_last;
}

static void
stress(void *arg)
{
    Table *table = arg;
    Rng rng;
    rng_seed(&rng, rt_self()->id);
    for (u64 done = 0; done < table->rounds;) {
        u32 at = (u32)rng_below(&rng, CELLS);
        Cell *cell = cell_enter(table, at);
        Err err = OK;
        u64 draw = rng_below(&rng, 8);
        if (draw < 4)
            rt_mutex_lock(&cell->mutex);
        else
            err = rt_mutex_lock_until(&cell->mutex, rt_deadline_after(rng_below(&rng, 60000)));
        if (err == ERR_INTERRUPT) rt_task_clear_cancel(rt_self());
        bool is_last;
        if (err == OK) {
            cell->plain++;
            done++;
            if (draw == 0) rt_yield();
            rt_fetch_add(&table->acquired, 1);
            /* Leaves the table while still holding the lock: the next owner may be the last user
               and frees the cell the moment it has unlocked. */
            is_last = cell_leave(table, at);
            rt_mutex_unlock(&cell->mutex);
        } else {
            rt_fetch_add(err == ERR_INTERRUPT ? &table->cancelled : &table->timed_out, 1);
            is_last = cell_leave(table, at);
            if (is_last) { /* The owner may be inside still: go through once. */
                rt_mutex_lock(&cell->mutex);
                rt_mutex_unlock(&cell->mutex);
            }
        }
        if (is_last) mem_free(cell);
    }
}

static RtTask *_Atomic victims[THREADS];
static _Atomic u32 next_victim;

static void
on_timer(int number)
{
    (void)number;
    RtTask *task = victims[next_victim++ % THREADS];
    if (task != NULL) rt_task_cancel(task);
}

static u64 hangs_after_ns = 30 * RT_NS_PER_S;

static void
run_stress(u64 rounds)
{
    Table *table = MEM_NEW(Table);
    RtThread *threads[THREADS];
    table->rounds = rounds / THREADS;
    rt_latch_init(&table->latch, 1);
    signal(SIGALRM, on_timer);
    struct itimerval every = {{0, 200}, {0, 200}}, never = {0};
    for (u32 i = 0; i < THREADS; i++) {
        assert_int_equal(rt_thread_start(rt_process(), stress, table, "stress", &threads[i]), OK);
        victims[i] = rt_thread_task(threads[i]);
    }
    setitimer(ITIMER_REAL, &every, NULL);
    u64 all = table->rounds * THREADS;
    u64 seen = 0, last = 0, moved_ns = rt_now_ns();
    while ((seen = rt_load(&table->acquired)) < all) {
        (void)!rt_sleep_ns(RT_NS_PER_MS);
        if (seen != last) moved_ns = rt_now_ns();
        if (rt_now_ns() - moved_ns > hangs_after_ns) _exit(7); /* A lost wake. */
        last = seen;
    }
    /* From here the handler may not meet a freed task. */
    setitimer(ITIMER_REAL, &never, NULL);
    for (u32 i = 0; i < THREADS; i++)
        victims[i] = NULL;
    for (u32 i = 0; i < THREADS; i++)
        rt_thread_join(threads[i]);
    for (u32 i = 0; i < CELLS; i++)
        assert_null(table->cells[i]);
    printf("%llu acquisitions, %llu timed out, %llu cancelled\n",
           (unsigned long long)rt_load(&table->acquired),
           (unsigned long long)rt_load(&table->timed_out),
           (unsigned long long)rt_load(&table->cancelled));
    mem_free(table);
}

static void
the_protocol_holds(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    run_stress(120000);
    assert_int_equal(mem_live_blocks(), blocks);
}

static RtPick
even_only(void *arg, const RtWaiterInfo *waiter)
{
    (*(u32 *)arg)++;
    return waiter->arg % 2 == 0 ? RT_PICK_TAKE : RT_PICK_SKIP;
}

typedef struct Waiting {
    RtU64 word;
    u64 arg;
    RtParkResult result;
} Waiting;

static RtU64 key_word;

static void
park_with_arg(void *arg)
{
    Waiting *waiting = arg;
    waiting->result = rt_park(&key_word, &key_word, 0xff00, 0x1200, RT_FOREVER, 0, waiting->arg);
}

static void
filters_choose_and_masks_compare(void **state)
{
    (void)state;
    Waiting waits[6] = {0};
    RtThread *threads[6];
    RtCounters before, now;
    rt_word_init(&key_word, 0xabcd1234);
    rt_process_counters(rt_process(), &before);
    for (u32 i = 0; i < 6; i++) {
        waits[i].arg = i;
        assert_int_equal(rt_thread_start(rt_process(), park_with_arg, &waits[i], "w", &threads[i]),
                         OK);
    }
    do {
        (void)!rt_sleep_ns(100000);
        rt_process_counters(rt_process(), &now);
    } while (now.parks - before.parks < 6); /* Our own sleeps count too: try a few times more. */
    u32 seen = 0, woken = 0;
    while (woken < 3) {
        woken += rt_unpark(&key_word, RT_PARK_ALL, even_only, NULL, &seen);
        rt_yield();
    }
    assert_true(seen >= 3);
    for (u32 i = 0; i < 6; i += 2)
        rt_thread_join(threads[i]);
    rt_store(&key_word, 0xabcd5634);
    woken = 0;
    while (woken < 3 && !(waits[1].result || waits[3].result || waits[5].result)) {
        woken += rt_unpark_all(&key_word);
        rt_yield();
    }
    for (u32 i = 1; i < 6; i += 2)
        rt_thread_join(threads[i]);
    assert_int_equal(rt_park(&key_word, &key_word, 0xff00, 0x1200, RT_FOREVER, 0, 0), RT_CHANGED);
    assert_int_equal(rt_park(&key_word, &key_word, 0xff00, 0x5600, 0, 0, 0), RT_TIMEOUT);
}

#ifdef WEFT_CHECK
/* The stress in a child with one bug planted: it must crash, report or hang within its time. */
static bool
planted_is_found(const char *self, const char *plant)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("WEFT_PLANT", plant, 1);
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(0);
        execl(self, self, "400", NULL);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status != 0;
}
#endif

static void
planted_bugs_are_found(void **state)
{
    (void)state;
#ifdef WEFT_CHECK
    const char *plants[] = {"1", "2", "3"};
    for (u32 i = 0; i < COUNT_OF(plants); i++) {
        bool found = false; /* Each run finds it with luck only. */
        for (u32 tries = 0; tries < 20 && !found; tries++)
            found = planted_is_found("/proc/self/exe", plants[i]);
        assert_true(found);
    }
#endif
}

int
main(int argc, char **argv)
{
    if (argc == 2) {
        if (getenv("WEFT_PLANT") != NULL) hangs_after_ns = 2 * RT_NS_PER_S;
        run_stress(strtoull(argv[1], NULL, 10) * 1000);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_protocol_holds),
        cmocka_unit_test(filters_choose_and_masks_compare),
        cmocka_unit_test(planted_bugs_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
