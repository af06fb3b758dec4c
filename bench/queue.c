/*
 * queue.c -- T=queue: a queue of leased jobs, worked off by 1, 16 and 64 workers.
 *
 * A worker claims jobs in order of priority (1, 16, 128 or 512 at once), finishes them one by one
 * or in one transaction, and puts as many new ones into the queue.  One job in twenty fails and is
 * queued again, one in a hundred is forgotten, until its lease expires.  One more connection writes
 * elsewhere in the database: how long must it wait?  Afterwards every job must have been finished
 * at most once, and as many as were acknowledged.
 */
#include <stdlib.h>

#include "groups.h"
#include "load.h"

#define CLAIM_MAX 512
#define READY     20000

enum { CLAIM, FINISH, FAIL, ENQUEUE, EXPIRE, ELSEWHERE, STATEMENTS };

static const char *const sql[STATEMENTS] = {
    [CLAIM] = "UPDATE job SET state=1, worker=?1, lease_until=?2, tries=tries+1 WHERE id IN"
              " (SELECT id FROM job WHERE state=0 ORDER BY priority, id LIMIT ?3) RETURNING id",
    [FINISH] = "UPDATE job SET state=2, finished=finished+1 WHERE id=?1 AND worker=?2 AND state=1",
    [FAIL] = "UPDATE job SET state=0, priority=priority+1 WHERE id=?1 AND worker=?2 AND state=1",
    [ENQUEUE] =
        "INSERT INTO job(priority, state, lease_until, worker, tries, finished, payload)"
        " VALUES(?1, 0, 0, 0, 0, 0, 'sixty-four bytes of what is to be done, more or less')",
    [EXPIRE] = "UPDATE job SET state=0 WHERE state=1 AND lease_until<?1",
    [ELSEWHERE] = "UPDATE other SET n=n+1 WHERE id=?1",
};

/* Kinds of latencies. */
enum { KIND_CLAIM, KIND_FINISH, KIND_ENQUEUE, KIND_EXPIRE, KIND_ELSEWHERE };

typedef struct Queue {
    const Engine *engine;
    char path[512];
    int64_t enqueued, finished, elsewhere; /* Acknowledged, all runs. */
    pthread_mutex_t lock;                  /* Of the three. */
} Queue;

typedef struct Hand {
    sqlite3_stmt *stmt[STATEMENTS];
    int64_t job[CLAIM_MAX];
    int claimed, wanted, next_kind;
    int64_t claims, enqueued, finished, elsewhere;
    int64_t changed; /* By the transaction that runs. */
} Hand;

static void
fill(Queue *queue)
{
    db_remove(queue->path);
    Db db = db_open(queue->engine, queue->path, (DbMode){0});
    db_exec(&db,
            "CREATE TABLE job(id INTEGER PRIMARY KEY, priority INT, state INT, lease_until INT,"
            " worker INT, tries INT, finished INT, payload TEXT);"
            "CREATE INDEX job_ready ON job(state, priority, id);"
            "CREATE TABLE other(id INTEGER PRIMARY KEY, n INT); BEGIN");
    sqlite3_stmt *stmt = db_prepare(&db, sql[ENQUEUE]);
    for (int64_t i = 0; i < READY; i++) {
        queue->engine->bind_int64(stmt, 1, i * 7919 % 10);
        db_run(&db, stmt);
    }
    queue->engine->finalize(stmt);
    stmt = db_prepare(&db, "INSERT INTO other VALUES(?1, 0)");
    for (int64_t i = 1; i <= 1000; i++) {
        queue->engine->bind_int64(stmt, 1, i);
        db_run(&db, stmt);
    }
    queue->engine->finalize(stmt);
    db_exec(&db, "COMMIT");
    db_close(&db);
}

static void
audit(Bench *bench, const Queue *queue, const char *after)
{
    Db db = db_open(queue->engine, queue->path, (DbMode){0});
    const struct {
        const char *text, *sql;
        int64_t expected;
    } rules[] = {
        {"jobs that were finished twice", "SELECT count(*) FROM job WHERE finished>1", 0},
        {"finished jobs", "SELECT sum(finished) FROM job", queue->finished},
        {"jobs done", "SELECT count(*) FROM job WHERE state=2", queue->finished},
        {"jobs", "SELECT count(*) FROM job NOT INDEXED", READY + queue->enqueued},
        {"jobs in the index", "SELECT count(*) FROM job INDEXED BY job_ready WHERE state>=0",
         READY + queue->enqueued},
        {"writes elsewhere", "SELECT sum(n) FROM other", queue->elsewhere},
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        int64_t found = db_int(&db, rules[i].sql);
        if (found == rules[i].expected) continue;
        bench_fail(bench, "%s, after %s: %lld %s, not %lld", queue->engine->name, after,
                   (long long)found, rules[i].text, (long long)rules[i].expected);
    }
    db_close(&db);
}

static void
start(Worker *worker)
{
    Hand *hand = calloc(1, sizeof(Hand));
    if (hand == NULL) abort();
    for (int i = 0; i < STATEMENTS; i++)
        hand->stmt[i] = db_prepare(&worker->db, sql[i]);
    worker->own = hand;
}

static void
end(Worker *worker)
{
    Hand *hand = worker->own;
    Queue *queue = worker->load->arg;
    for (int i = 0; i < STATEMENTS; i++)
        worker->db.engine->finalize(hand->stmt[i]);
    pthread_mutex_lock(&queue->lock);
    queue->enqueued += hand->enqueued;
    queue->finished += hand->finished;
    queue->elsewhere += hand->elsewhere;
    pthread_mutex_unlock(&queue->lock);
    worker->acknowledged = hand->finished;
    free(hand);
}

static int
claim_body(Worker *worker, void *arg)
{
    Hand *hand = arg;
    const Engine *e = worker->db.engine;
    sqlite3_stmt *stmt = hand->stmt[CLAIM];
    e->bind_int64(stmt, 1, worker->number + 1);
    e->bind_int64(stmt, 2, 1000000);
    e->bind_int64(stmt, 3, hand->wanted);
    hand->claimed = 0;
    int code = e->step(stmt);
    for (; code == CODE_ROW; code = e->step(stmt)) {
        if (hand->claimed < CLAIM_MAX) hand->job[hand->claimed++] = e->column_int64(stmt, 0);
    }
    int extended = code == CODE_DONE ? CODE_OK : e->extended_errcode(worker->db.handle);
    e->reset(stmt);
    return extended;
}

/* Finish or fail the claimed jobs from `first` on; `hand->changed` counts those finished. */
static int
settle(Worker *worker, Hand *hand, int first, int count)
{
    const Engine *e = worker->db.engine;
    int code = CODE_OK;
    for (int i = first; i < first + count && code == CODE_OK; i++) {
        int64_t job = hand->job[i];
        /* By the job's number, so that a retry does the same; a hundredth is forgotten. */
        if (job * 2654435761 % 100 == 0) continue;
        int which = job * 40503 % 20 == 0 ? FAIL : FINISH;
        e->bind_int64(hand->stmt[which], 1, job);
        e->bind_int64(hand->stmt[which], 2, worker->number + 1);
        code = load_step(worker, hand->stmt[which]);
        if (code == CODE_OK && which == FINISH) hand->changed += e->changes(worker->db.handle);
    }
    return code;
}

static int
settle_all_body(Worker *worker, void *arg)
{
    Hand *hand = arg;
    hand->changed = 0;
    return settle(worker, hand, 0, hand->claimed);
}

static int
settle_last_body(Worker *worker, void *arg)
{
    Hand *hand = arg;
    hand->changed = 0;
    return settle(worker, hand, hand->claimed - 1, 1);
}

static int
enqueue_body(Worker *worker, void *arg)
{
    Hand *hand = arg;
    int code = CODE_OK;
    for (int i = 0; i < hand->wanted && code == CODE_OK; i++) {
        worker->db.engine->bind_int64(hand->stmt[ENQUEUE], 1, (worker->number + i) % 10);
        code = load_step(worker, hand->stmt[ENQUEUE]);
    }
    return code;
}

static void
work(Worker *worker, Hand *hand)
{
    static const int sizes[] = {1, 1, 16, 16, 16, 128, 128, 512};
    switch (hand->next_kind) {
    case KIND_CLAIM:
        hand->wanted = sizes[random_next(&worker->state) % 8];
        load_transact(worker, true, claim_body, hand);
        hand->next_kind = hand->claimed > 0 ? KIND_FINISH : KIND_ENQUEUE;
        break;
    case KIND_FINISH:
        /* Small batches one by one, large ones in one transaction. */
        load_transact(worker, true, hand->wanted <= 16 ? settle_last_body : settle_all_body, hand);
        hand->finished += hand->changed;
        hand->claimed = hand->wanted <= 16 ? hand->claimed - 1 : 0;
        if (hand->claimed == 0) hand->next_kind = KIND_ENQUEUE;
        break;
    case KIND_ENQUEUE:
        load_transact(worker, true, enqueue_body, hand);
        hand->enqueued += hand->wanted;
        hand->next_kind = ++hand->claims % 32 == 0 && worker->number == 0 ? KIND_EXPIRE
                                                                          : KIND_CLAIM;
        break;
    default:
        worker->db.engine->bind_int64(hand->stmt[EXPIRE], 1, 0);
        load_autocommit(worker, true, hand->stmt[EXPIRE]);
        hand->next_kind = KIND_CLAIM;
        break;
    }
}

static void
operate(Worker *worker)
{
    Hand *hand = worker->own;
    if (worker->number == worker->load->connections - 1) {
        worker->kind = KIND_ELSEWHERE;
        worker->db.engine->bind_int64(hand->stmt[ELSEWHERE], 1,
                                      random_between(&worker->state, 1, 1000));
        load_autocommit(worker, true, hand->stmt[ELSEWHERE]);
        hand->elsewhere++;
        return;
    }
    worker->kind = hand->next_kind;
    work(worker, hand);
}

static void
run_row(Bench *bench, Queue queue[2], int workers, bool is_full)
{
    Row row = {.unit = "jobs_per_s", .is_rate = true};
    Row claim = {.unit = "p95_ms"}, writer = {.unit = "p95_ms"};
    Load load = {.mode = {.is_full = is_full, .multi = true},
                 .connections = workers + 1,
                 .seconds = bench->options.seconds * 2,
                 .start = start,
                 .operate = operate,
                 .end = end};
    LoadStyle style = LOAD_STYLES;
    if (is_full && workers == 16) row.goal = 5;
    snprintf(row.name, sizeof(row.name), "queue.jobs_%d_%s", workers, is_full ? "full" : "normal");
    snprintf(claim.name, sizeof(claim.name), "queue.claim_%d_%s", workers,
             is_full ? "full" : "normal");
    snprintf(writer.name, sizeof(writer.name), "queue.writer_%d_%s", workers,
             is_full ? "full" : "normal");
    if (!bench_wants(bench, row.name)) return;
    if (bench->engines == 2)
        row.peer_name = claim.peer_name = writer.peer_name = bench->options.peer_name;
    for (int round = 0; round < bench->options.rounds; round++) {
        LoadResult result[2] = {{0}, {0}};
        double rate[2] = {0};
        load.seed = (uint64_t)round;
        for (int i = 0; i < bench->engines; i++) {
            int at = bench->engines == 2 ? (i + round) % 2 : 0;
            load.engine = queue[at].engine;
            load.path = queue[at].path;
            load.arg = &queue[at];
            load.style = at == 0 ? LOAD_TIMEOUT : style;
            if (load.style == LOAD_STYLES) load.style = style = load_best_style(&load);
            result[at] = load_run(&load);
            rate[at] = (double)result[at].acknowledged * result[at].per_second /
                       (double)result[at].done;
            audit(bench, &queue[at], row.name);
        }
        row_add(&row, rate[0], rate[1]);
        row_add(&claim, result[0].p95_ms[KIND_CLAIM], result[1].p95_ms[KIND_CLAIM]);
        row_add(&writer, result[0].p95_ms[KIND_ELSEWHERE], result[1].p95_ms[KIND_ELSEWHERE]);
    }
    row_show(bench, &row);
    row_show(bench, &claim);
    row_show(bench, &writer);
}

void
queue_group(Bench *bench)
{
    static const int workers[] = {1, 16, 64};
    Queue queue[2];
    for (int i = 0; i < bench->engines; i++) {
        queue[i] = (Queue){.engine = &bench->engine[i], .lock = PTHREAD_MUTEX_INITIALIZER};
        snprintf(queue[i].path, sizeof(queue[i].path), "%s/queue-%s.db", bench->options.directory,
                 bench->engine[i].name);
        fill(&queue[i]);
    }
    for (int full = 1; full >= 0; full--) {
        for (size_t at = 0; at < 3; at++) {
            if (workers[at] <= bench->options.connections)
                run_row(bench, queue, workers[at], full == 1);
        }
    }
    for (int i = 0; i < bench->engines; i++)
        db_remove(queue[i].path);
}
