/*
 * crowd_test.c -- many connections that claim jobs, each with one UPDATE that searches for them.
 *
 * Method: real threads on one database.  Whatever they do to each other, each job is claimed once;
 * and what loses a row queues up: without the queue a claim loses again and again.
 */
#include "rt/task.h"
#include "rt/time.h"
#include "session/session__impl.h"
#include "session_kit.h"

#define THREADS 6u
#define CLAIMS  60u

typedef struct Claimer {
    Session *session;
    bool in_transaction;
} Claimer;

static void
claim(void *arg)
{
    Claimer *claimer = arg;
    const char *begin = claimer->in_transaction ? "BEGIN CONCURRENT" : "SELECT 1";
    const char *end = claimer->in_transaction ? "COMMIT" : "SELECT 1";
    for (u32 i = 0; i < CLAIMS; i++) {
        kit_exec(claimer->session, begin);
        kit_exec(claimer->session,
                 "UPDATE job SET tries = tries + 1, state = 1 WHERE id IN (SELECT id FROM job"
                 " WHERE state = 0 ORDER BY priority, id LIMIT 5)");
        /* Time for the others to want the same rows. */
        if (claimer->in_transaction) assert_int_equal(rt_sleep_ns(200000), OK);
        kit_exec(claimer->session, end);
    }
}

static void
claims(bool in_transaction)
{
    Claimer claimer[THREADS];
    RtThread *thread[THREADS];
    for (u32 i = 0; i < THREADS; i++) {
        SessionOptions options = {.create = true,
                                  .in_memory = true,
                                  .sync = STORE_SYNC_FULL,
                                  .level = STORE_SNAPSHOT,
                                  .busy_timeout_ns = 60000 * MS};
        ErrMsg msg = {.sql_offset = -1};
        claimer[i] = (Claimer){.in_transaction = in_transaction};
        assert_int_equal(
            session_open(rt_process_default(), "crowd", &options, &claimer[i].session, &msg), OK);
    }
    Session *first = claimer[0].session;
    kit_exec(first, "CREATE TABLE job(id INTEGER PRIMARY KEY, priority INT, state INT, tries INT);"
                    "CREATE INDEX ready ON job(state, priority, id);"
                    "INSERT INTO job SELECT value, value % 7, 0, 0 FROM generate_series(1, 5000)");
    for (u32 i = 0; i < THREADS; i++)
        assert_int_equal(rt_thread_start(rt_process_default(), claim, &claimer[i], "c", &thread[i]),
                         OK);
    for (u32 i = 0; i < THREADS; i++)
        rt_thread_join(thread[i]);
    kit_query(first, "SELECT sum(state), sum(tries), max(tries) FROM job", "1800|1800|1;");
    StoreStats stats;
    store_stats(first->db[0].database->store, &stats);
    print_message("%u claims lost %u rows\n", THREADS * CLAIMS, (u32)stats.conflicts);
    if (in_transaction) assert_true(stats.conflicts < THREADS * CLAIMS / 2);
    for (u32 i = 0; i < THREADS; i++)
        session_destroy(claimer[i].session);
}

static void
claims_in_autocommit(void **state)
{
    (void)state;
    claims(false);
}

static void
claims_in_transactions(void **state)
{
    (void)state;
    claims(true);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_in_autocommit),
        cmocka_unit_test(claims_in_transactions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
