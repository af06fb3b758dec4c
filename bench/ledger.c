/*
 * ledger.c -- T=ledger: transfers between accounts, and questions about them.
 *
 * After every run an audit (ledger_books.c); before the reading shapes are timed, both engines'
 * answers to the same questions are compared.
 */
#include "ledger.h"

#include <stdlib.h>

#include "groups.h"

enum {
    DEBIT,
    CREDIT,
    ADD,
    EVENT,
    BALANCE,
    HISTORY,
    STATEMENT,
    ANALYTIC,
    PEND_DEBIT,
    PEND_CREDIT,
    PEND,
    SETTLE_DEBIT,
    SETTLE_CREDIT,
    SETTLE,
    STATEMENTS
};

static const char *const sql[STATEMENTS] = {
    [DEBIT] = "UPDATE account SET debits_posted=debits_posted+?2 WHERE id=?1",
    [CREDIT] = "UPDATE account SET credits_posted=credits_posted+?2 WHERE id=?1",
    [ADD] = "INSERT INTO transfer(debit,credit,amount,state,stamp) VALUES(?1,?2,?3,0,?4)",
    [EVENT] = "INSERT INTO event(account,kind,note) VALUES(?1,?2,'a note of forty characters, as "
              "they are usual')",
    [BALANCE] = "SELECT debits_posted-credits_posted, debits_pending, credits_pending FROM account"
                " WHERE id=?1",
    [HISTORY] = "SELECT * FROM (SELECT id, debit, credit, amount FROM transfer WHERE debit=?1"
                " ORDER BY id DESC LIMIT 20) UNION ALL SELECT * FROM (SELECT id, debit, credit,"
                " amount FROM transfer WHERE credit=?1 ORDER BY id DESC LIMIT 20)"
                " ORDER BY 1 DESC LIMIT 20",
    [STATEMENT] = "SELECT count(*), sum(amount) FROM transfer WHERE debit=?1",
    [ANALYTIC] = "SELECT debit%100, count(*), sum(amount) FROM (SELECT debit, amount FROM transfer"
                 " WHERE id<=?1 ORDER BY id DESC LIMIT 5000) GROUP BY 1",
    [PEND_DEBIT] = "UPDATE account SET debits_pending=debits_pending+?2 WHERE id=?1",
    [PEND_CREDIT] = "UPDATE account SET credits_pending=credits_pending+?2 WHERE id=?1",
    [PEND] = "INSERT INTO transfer(debit,credit,amount,state,stamp) VALUES(?1,?2,?3,1,?4)"
             " RETURNING id",
    [SETTLE_DEBIT] = "UPDATE account SET debits_pending=debits_pending-?2,"
                     " debits_posted=debits_posted+?3 WHERE id=?1",
    [SETTLE_CREDIT] = "UPDATE account SET credits_pending=credits_pending-?2,"
                      " credits_posted=credits_posted+?3 WHERE id=?1",
    [SETTLE] = "UPDATE transfer SET state=?2 WHERE id=?1 AND state=1",
};

typedef struct Teller {
    sqlite3_stmt *stmt[STATEMENTS];
    int64_t accounts, seeded;
    uint64_t digest; /* Of what was read. */
} Teller;

/* What one transaction moves; fixed before it begins, so that it can be tried again. */
typedef struct Move {
    int64_t debit, credit, amount, id;
    bool is_post;
} Move;

typedef struct Shape {
    const char *name;
    void (*operate)(Worker *worker);
    bool reads;
    double goal[3]; /* At 1, 8 and 32 connections; 0: none. */
} Shape;

static int
bind_step(Worker *worker, int which, const int64_t *values, int count)
{
    Teller *teller = worker->own;
    for (int i = 0; i < count; i++)
        worker->db.engine->bind_int64(teller->stmt[which], i + 1, values[i]);
    return load_step(worker, teller->stmt[which]);
}

static Move
random_move(Worker *worker)
{
    const Teller *teller = worker->own;
    Move move = {.debit = random_between(&worker->state, 1, teller->accounts),
                 .credit = random_between(&worker->state, 1, teller->accounts),
                 .amount = random_between(&worker->state, 1, 1000),
                 .is_post = random_between(&worker->state, 1, 10) <= 8};
    if (move.debit == move.credit) move.credit = move.debit % teller->accounts + 1;
    return move;
}

/* Both accounts, the smaller number first, so that no two transactions wait for each other. */
static int
touch_accounts(Worker *worker, const Move *move, int debit, int credit, int64_t b, int64_t c)
{
    const int64_t first[3] = {move->debit, b, c}, second[3] = {move->credit, b, c};
    int values = debit == SETTLE_DEBIT ? 3 : 2;
    bool in_order = move->debit < move->credit;
    int code = in_order ? bind_step(worker, debit, first, values)
                        : bind_step(worker, credit, second, values);
    if (code != CODE_OK) return code;
    return in_order ? bind_step(worker, credit, second, values)
                    : bind_step(worker, debit, first, values);
}

static int
transfer_body(Worker *worker, void *arg)
{
    const Move *move = arg;
    int code = touch_accounts(worker, move, DEBIT, CREDIT, move->amount, 0);
    if (code != CODE_OK) return code;
    return bind_step(worker, ADD,
                     (const int64_t[]){move->debit, move->credit, move->amount, worker->number}, 4);
}

static void
transfer(Worker *worker)
{
    Move move = random_move(worker);
    worker->kind = 0;
    load_transact(worker, true, transfer_body, &move);
    worker->acknowledged++;
}

static int
batch_body(Worker *worker, void *arg)
{
    Move *move = arg;
    int code = CODE_OK;
    for (int i = 0; i < 10 && code == CODE_OK; i++)
        code = transfer_body(worker, &move[i]);
    return code;
}

static void
batch(Worker *worker)
{
    Move move[10];
    for (int i = 0; i < 10; i++)
        move[i] = random_move(worker);
    worker->kind = 0;
    load_transact(worker, true, batch_body, move);
    worker->acknowledged += 10;
}

static int
pend_body(Worker *worker, void *arg)
{
    Move *move = arg;
    Teller *teller = worker->own;
    bool found;
    int code = touch_accounts(worker, move, PEND_DEBIT, PEND_CREDIT, move->amount, 0);
    if (code != CODE_OK) return code;
    const int64_t values[] = {move->debit, move->credit, move->amount, worker->number};
    for (int i = 0; i < 4; i++)
        worker->db.engine->bind_int64(teller->stmt[PEND], i + 1, values[i]);
    return load_step_int(worker, teller->stmt[PEND], &move->id, &found);
}

static int
settle_body(Worker *worker, void *arg)
{
    const Move *move = arg;
    int64_t posted = move->is_post ? move->amount : 0;
    int code = touch_accounts(worker, move, SETTLE_DEBIT, SETTLE_CREDIT, move->amount, posted);
    if (code != CODE_OK) return code;
    return bind_step(worker, SETTLE, (const int64_t[]){move->id, move->is_post ? 0 : 2}, 2);
}

static void
lifecycle(Worker *worker)
{
    Move move = random_move(worker);
    worker->kind = 1;
    load_transact(worker, true, pend_body, &move);
    load_transact(worker, true, settle_body, &move);
    worker->acknowledged++;
}

static void
insert_event(Worker *worker)
{
    Teller *teller = worker->own;
    worker->kind = 0;
    worker->db.engine->bind_int64(teller->stmt[EVENT], 1, random_move(worker).debit);
    worker->db.engine->bind_int64(teller->stmt[EVENT], 2, worker->number);
    load_autocommit(worker, true, teller->stmt[EVENT]);
    worker->acknowledged++;
}

/* Read all rows of a statement about one account into the digest. */
static void
read_about(Worker *worker, int which, int64_t about, int kind)
{
    Teller *teller = worker->own;
    const Engine *e = worker->db.engine;
    sqlite3_stmt *stmt = teller->stmt[which];
    worker->kind = kind;
    e->bind_int64(stmt, 1, about);
    int code = e->step(stmt);
    for (; code == CODE_ROW; code = e->step(stmt)) {
        for (int i = 0; i < e->column_count(stmt); i++)
            teller->digest = teller->digest * 31 + (uint64_t)e->column_int64(stmt, i);
    }
    db_must(&worker->db, code, sql[which]);
    e->reset(stmt);
}

static void
balance(Worker *worker)
{
    const Teller *teller = worker->own;
    read_about(worker, BALANCE, random_between(&worker->state, 1, teller->accounts), 2);
}

static void
history(Worker *worker)
{
    const Teller *teller = worker->own;
    read_about(worker, HISTORY, random_between(&worker->state, 1, teller->accounts / 100), 3);
}

static void
statement(Worker *worker)
{
    const Teller *teller = worker->own;
    read_about(worker, STATEMENT, random_between(&worker->state, 1, teller->accounts / 100), 4);
}

static void
analytic(Worker *worker)
{
    const Teller *teller = worker->own;
    read_about(worker, ANALYTIC, random_between(&worker->state, 5000, teller->seeded), 5);
}

static void
mixed(Worker *worker)
{
    int64_t dice = random_between(&worker->state, 1, 100);
    if (dice <= 60)
        transfer(worker);
    else if (dice <= 80)
        lifecycle(worker);
    else
        balance(worker);
}

static void
blend(Worker *worker)
{
    int64_t dice = random_between(&worker->state, 1, 100);
    if (dice <= 40)
        transfer(worker);
    else if (dice <= 50)
        lifecycle(worker);
    else if (dice <= 80)
        balance(worker);
    else if (dice <= 90)
        history(worker);
    else
        statement(worker);
}

static const Shape shapes[] = {
    {"balance", balance, true, {0}},
    {"history", history, true, {1.2}},
    {"statement", statement, true, {1.2}},
    {"analytic", analytic, true, {1.2}},
    {"transfer", transfer, false, {1.3, 5, 8}},
    {"lifecycle", lifecycle, false, {0}},
    {"batch", batch, false, {0}},
    {"insert", insert_event, false, {0}},
    {"mixed", mixed, false, {0}},
    {"blend", blend, false, {0}},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void
start(Worker *worker)
{
    Teller *teller = calloc(1, sizeof(Teller));
    if (teller == NULL) abort();
    const Ledger *ledger = worker->load->arg;
    teller->accounts = ledger->accounts;
    teller->seeded = ledger->seeded;
    for (int i = 0; i < STATEMENTS; i++)
        teller->stmt[i] = db_prepare(&worker->db, sql[i]);
    worker->own = teller;
}

static void
end(Worker *worker)
{
    Teller *teller = worker->own;
    for (int i = 0; i < STATEMENTS; i++)
        worker->db.engine->finalize(teller->stmt[i]);
    free(teller);
}

/* The digest of `times` seeded questions. */
static uint64_t
ask(const Ledger *ledger, const Shape *shape, int times)
{
    Load load = {.engine = ledger->engine, .arg = (void *)(uintptr_t)ledger};
    Worker worker = {.load = &load, .state = 88172645463325252u};
    worker.db = db_open(ledger->engine, ledger->path, (DbMode){0});
    start(&worker);
    for (int i = 0; i < times; i++)
        shape->operate(&worker);
    uint64_t digest = ((Teller *)worker.own)->digest;
    end(&worker);
    db_close(&worker.db);
    return digest;
}

static LoadResult
run_once(Bench *bench, Ledger *ledger, const Shape *shape, Load *load, const char *name)
{
    load->engine = ledger->engine;
    load->path = ledger->path;
    load->arg = ledger;
    load->acknowledged_total = shape->operate == insert_event ? &ledger->events
                               : shape->reads                 ? NULL
                                                              : &ledger->transfers;
    if (load->style == LOAD_STYLES) load->style = load_best_style(load);
    LoadResult result = load_run(load);
    if (!shape->reads) ledger_audit(bench, ledger, name, false);
    /* The fixed cost is the same for both only if both pay it. */
    if (!shape->reads && load->mode.is_full && load->connections == 1 && result.syncs >= 0 &&
        shape->operate != blend && shape->operate != mixed && result.syncs < result.done) {
        bench_fail(bench, "%s, %s: %lld syncs for %lld durable operations", ledger->engine->name,
                   name, (long long)result.syncs, (long long)result.done);
    }
    return result;
}

static void
run_shape(Bench *bench, Ledger ledger[2], const Shape *shape, int connections, double goal)
{
    Row row = {.unit = "per_s", .is_rate = true, .goal = goal};
    Load load = {.mode = {.is_full = true, .multi = true},
                 .connections = connections,
                 .seconds = bench->options.seconds,
                 .start = start,
                 .operate = shape->operate,
                 .end = end};
    LoadStyle style = LOAD_STYLES;
    double p99[2] = {0};
    snprintf(row.name, sizeof(row.name), "ledger.%s_%d%s", shape->name, connections,
             bench->options.device[0] == 'd' ? "_disk" : "");
    if (!bench_wants(bench, row.name)) return;
    if (bench->engines == 2) row.peer_name = bench->options.peer_name;
    for (int round = 0; round < bench->options.rounds; round++) {
        double rate[2] = {0};
        load.seed = (uint64_t)round;
        for (int i = 0; i < bench->engines; i++) {
            int at = bench->engines == 2 ? (i + round) % 2 : 0;
            load.style = at == 0 ? LOAD_TIMEOUT : style;
            LoadResult result = run_once(bench, &ledger[at], shape, &load, row.name);
            if (at == 1) style = load.style;
            rate[at] = result.per_second;
            for (int kind = 0; kind < LOAD_KINDS; kind++)
                p99[at] = result.p99_ms[kind] > p99[at] ? result.p99_ms[kind] : p99[at];
        }
        row_add(&row, rate[0], rate[1]);
    }
    static const char *const styles[] = {"timeout", "polling", "mutex", "timeout"};
    snprintf(row.note, sizeof(row.note), "p99 ms %.2f / %.2f, peer waits by %s", p99[0], p99[1],
             styles[style]);
    row_show(bench, &row);
}

void
ledger_group(Bench *bench)
{
    static const int connections[] = {1, 8, 32};
    Ledger ledger[2];
    bool is_disk = bench->options.device[0] == 'd';
    for (int i = 0; i < bench->engines; i++) {
        ledger[i] = (Ledger){.engine = &bench->engine[i],
                             .accounts = bench->options.accounts,
                             .seeded = 2 * bench->options.accounts};
        snprintf(ledger[i].path, sizeof(ledger[i].path), "%s/ledger-%s.db",
                 bench->options.directory, bench->engine[i].name);
        double from = now_s();
        ledger_fill(&ledger[i]);
        printf("# %s: %lld accounts, %lld transfers in %.2f s\n", bench->engine[i].name,
               (long long)ledger[i].accounts, (long long)ledger[i].seeded, now_s() - from);
    }
    for (size_t i = 0; i < SHAPES && bench->engines == 2; i++) {
        if (shapes[i].reads && ask(&ledger[0], &shapes[i], 200) != ask(&ledger[1], &shapes[i], 200))
            bench_fail(bench, "ledger.%s: the engines' answers differ", shapes[i].name);
    }
    for (size_t i = 0; i < SHAPES; i++) {
        /* On a real disk only the shape that the goals speak of. */
        if (is_disk && shapes[i].operate != transfer) continue;
        for (size_t at = 0; at < 3; at++) {
            if (connections[at] > bench->options.connections) continue;
            run_shape(bench, ledger, &shapes[i], connections[at], shapes[i].goal[at]);
        }
    }
    for (int i = 0; i < bench->engines; i++) {
        ledger_audit(bench, &ledger[i], "all", true);
        db_remove(ledger[i].path);
    }
}
