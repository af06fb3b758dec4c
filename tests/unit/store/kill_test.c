/*
 * kill_test.c -- kill -9 while several writers commit; nothing acknowledged may be missing.
 *
 * Method: the test runs itself as a child, which opens the store and lets writers commit; after
 * each acknowledged commit the writer tells its parent through a pipe.  The parent kills the child
 * after a random time, opens the file, and finds for each writer at least the last number it was
 * told, and each commit whole (all rows of a writer hold one number).  Every other round the parent
 * closes the store properly, else it leaves the log to the next child.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt/task.h"
#include "store_kit.h"

#define WRITERS 4u
#define ROWS    5u

typedef struct Told {
    u32 writer, number;
} Told;

static char self_path[512];

/* ---- the child ---- */

typedef struct Child {
    Store *store;
    u32 writer;
    int pipe;
    u32 number;
} Child;

static void
row_key(u32 writer, u32 row, char key[16])
{
    snprintf(key, 16, "w%u-%u", writer, row);
}

static void
child_commit(Child *child, StoreSync sync)
{
    StoreTxn *txn;
    StoreTxnOptions options = {.level = STORE_SNAPSHOT, .sync = sync};
    Err err = store_txn_begin(child->store, &options, &txn);
    ASSERT(err == OK);
    u8 value[600];
    memset(value, 'x', sizeof(value));
    store_u32(value, child->number);
    for (u32 row = 0; row < ROWS; row++) {
        char key[16];
        row_key(child->writer, row, key);
        StoreVerdict verdict;
        Slice part = {value, 4 + (child->number * 37) % 590};
        err = store_put(txn, TREE_ROOT, kit_text(key), part, STORE_PUT_ANY, &verdict);
        ASSERT(err == OK);
    }
    err = store_txn_commit(txn, NULL);
    ASSERT(err == OK);
}

static void
child_writer(void *arg)
{
    Child *child = (Child *)arg;
    for (;;) {
        child->number++;
        /* Also below FULL a killed process loses nothing. */
        child_commit(child, child->writer % 2 == 0 ? STORE_SYNC_FULL : STORE_SYNC_OFF);
        Told told = {child->writer, child->number};
        if (write(child->pipe, &told, sizeof(told)) != sizeof(told)) return;
        if (child->writer == 0 && child->number % 50 == 0) {
            Err err = store_checkpoint(child->store, NULL);
            ASSERT(err == OK);
        }
    }
}

static u32
number_of(StoreTxn *txn, u32 writer, u32 row)
{
    char key[16];
    bool found;
    Slice value;
    row_key(writer, row, key);
    Err err = store_get(txn, TREE_ROOT, kit_text(key), &found, &value);
    ASSERT(err == OK);
    return found ? load_u32(value.p) : 0;
}

static int
child_main(const char *dir, int pipe)
{
    Kit kit;
    snprintf(kit.dir, sizeof(kit.dir), "%s", dir);
    snprintf(kit.path, sizeof(kit.path), "%s/t.db", dir);
    Store *store;
    ErrMsg msg = {0};
    Err err = kit_try_open(&kit, &store, &msg);
    if (err != OK) fprintf(stderr, "child: %s\n", err_message(&msg));
    ASSERT(err == OK);
    Child children[WRITERS];
    RtThread *threads[WRITERS];
    for (u32 i = 0; i < WRITERS; i++) {
        StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
        children[i] = (Child){.store = store, .writer = i, .pipe = pipe};
        children[i].number = number_of(txn, i, 0);
        store_txn_rollback(txn);
        err = rt_thread_start(rt_process_default(), child_writer, &children[i], "writer",
                              &threads[i]);
        ASSERT(err == OK);
    }
    rt_thread_join(threads[0]);
    return 0;
}

/* ---- the parent ---- */

static void
judge(const Kit *kit, const u32 told[WRITERS], bool closes)
{
    Kit copy;
    if (closes) {
        copy = *kit;
    } else {
        kit_copy(kit, &copy);
    }
    Store *store = kit_open(&copy);
    kit_check(store);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    for (u32 writer = 0; writer < WRITERS; writer++) {
        u32 number = number_of(txn, writer, 0);
        if (number < told[writer])
            print_error("writer %u: %u < %u\n", writer, number, told[writer]);
        assert_true(number >= told[writer]);
        for (u32 row = 1; row < ROWS; row++) {
            assert_int_equal(number_of(txn, writer, row), number);
        }
    }
    store_txn_rollback(txn);
    store_close(store);
    if (!closes) kit_end(&copy);
}

static void
one_life(const Kit *kit, u32 told[WRITERS], u32 life_us)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char number[16];
        close(pipes[0]);
        snprintf(number, sizeof(number), "%d", pipes[1]);
        execl(self_path, self_path, "child", kit->dir, number, (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    /* The first word of it means that it works; then let it live a little. */
    Told one;
    assert_int_equal(read(pipes[0], &one, sizeof(one)), (int)sizeof(one));
    told[one.writer] = one.number;
    usleep(life_us);
    kill(child, SIGKILL);
    while (read(pipes[0], &one, sizeof(one)) == (ssize_t)sizeof(one)) {
        told[one.writer] = one.number;
    }
    close(pipes[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
killed_writers(void **state)
{
    (void)state;
    const char *wanted = getenv("STORE_KILLS");
    u32 lives = wanted == NULL ? 16 : (u32)strtoul(wanted, NULL, 10);
    Kit kit;
    kit_start(&kit);
    u32 told[WRITERS] = {0};
    Rng rng;
    rng_seed(&rng, 7);
    for (u32 life = 0; life < lives; life++) {
        one_life(&kit, told, (u32)rng_below(&rng, 60000));
        judge(&kit, told, life % 4 == 3);
    }
    assert_true(told[0] > 10);
    kit_end(&kit);
}

int
main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "child") == 0) {
        return child_main(argv[2], (int)strtol(argv[3], NULL, 10));
    }
    ssize_t bytes = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
    if (bytes <= 0) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_writers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
