/*
 * tpcc_txn.c -- the five transactions, in the standard mix of 45, 43, 4, 4 and 4 of a hundred.
 *
 * What a transaction does is drawn before it begins, so that a retry does the same.  The first
 * statement of a writing transaction is the update that others are most likely to want, so that it
 * waits there, before it has read anything.
 */
#include <stdlib.h>
#include <string.h>

#include "tpcc.h"

enum {
    NO_DISTRICT,
    NO_WAREHOUSE,
    NO_CUSTOMER,
    NO_ORDER,
    NO_NEW,
    NO_ITEM,
    NO_STOCK,
    NO_STOCK_SET,
    NO_LINE,
    PAY_WAREHOUSE,
    PAY_DISTRICT,
    PAY_CUSTOMER,
    PAY_DATA,
    PAY_HISTORY,
    NAME_COUNT,
    NAME_MIDDLE,
    CREDIT,
    OS_CUSTOMER,
    OS_ORDER,
    OS_LINES,
    DEL_FIRST,
    DEL_DELETE,
    DEL_CUSTOMER,
    DEL_CARRIER,
    DEL_DATE,
    DEL_SUM,
    DEL_BALANCE,
    SL_NEXT,
    SL_COUNT,
    STATEMENTS
};

static const char *const sql[STATEMENTS] = {
    [NO_DISTRICT] = "UPDATE district SET d_next_o_id=d_next_o_id+1 WHERE d_w_id=?1 AND d_id=?2"
                    " RETURNING d_next_o_id-1, d_tax",
    [NO_WAREHOUSE] = "SELECT w_tax FROM warehouse WHERE w_id=?1",
    [NO_CUSTOMER] =
        "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id=?1 AND c_d_id=?2"
        " AND c_id=?3",
    [NO_ORDER] = "INSERT INTO orders VALUES(?1,?2,?3,?4,1,NULL,?5,?6)",
    [NO_NEW] = "INSERT INTO new_order VALUES(?1,?2,?3)",
    [NO_ITEM] = "SELECT i_price, i_name, i_data FROM item WHERE i_id=?1",
    [NO_STOCK] = "SELECT s_quantity, s_data, s_dist_01, s_dist_05, s_dist_10 FROM stock"
                 " WHERE s_w_id=?1 AND s_i_id=?2",
    [NO_STOCK_SET] = "UPDATE stock SET s_quantity=?3, s_ytd=s_ytd+?4, s_order_cnt=s_order_cnt+1,"
                     " s_remote_cnt=s_remote_cnt+?5 WHERE s_w_id=?1 AND s_i_id=?2",
    [NO_LINE] = "INSERT INTO order_line VALUES(?1,?2,?3,?4,?5,?6,NULL,?7,?8,"
                "'abcdefghijklmnopqrstuvwx')",
    [PAY_WAREHOUSE] = "UPDATE warehouse SET w_ytd=w_ytd+?2 WHERE w_id=?1 RETURNING w_name",
    [PAY_DISTRICT] = "UPDATE district SET d_ytd=d_ytd+?3 WHERE d_w_id=?1 AND d_id=?2"
                     " RETURNING d_name",
    [PAY_CUSTOMER] = "UPDATE customer SET c_balance=c_balance-?4, c_ytd_payment=c_ytd_payment+?4,"
                     " c_payment_cnt=c_payment_cnt+1 WHERE c_w_id=?1 AND c_d_id=?2 AND c_id=?3",
    [PAY_DATA] =
        "UPDATE customer SET c_data=substr(?3||' '||?2||' '||?1||' '||?4||' '||c_data,1,500)"
        " WHERE c_w_id=?1 AND c_d_id=?2 AND c_id=?3",
    [PAY_HISTORY] = "INSERT INTO history VALUES(?3,?2,?1,?5,?4,1,?6,'warehouse    district')",
    [NAME_COUNT] = "SELECT count(*) FROM customer WHERE c_w_id=?1 AND c_d_id=?2 AND c_last=?3",
    [NAME_MIDDLE] = "SELECT c_id FROM customer WHERE c_w_id=?1 AND c_d_id=?2 AND c_last=?3"
                    " ORDER BY c_first LIMIT 1 OFFSET ?4",
    [CREDIT] = "SELECT c_credit='BC' FROM customer WHERE c_w_id=?1 AND c_d_id=?2 AND c_id=?3",
    [OS_CUSTOMER] = "SELECT c_balance, c_first, c_last FROM customer WHERE c_w_id=?1 AND c_d_id=?2"
                    " AND c_id=?3",
    [OS_ORDER] = "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id=?1 AND o_d_id=?2"
                 " AND o_c_id=?3 ORDER BY o_id DESC LIMIT 1",
    [OS_LINES] = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d"
                 " FROM order_line WHERE ol_w_id=?1 AND ol_d_id=?2 AND ol_o_id=?3",
    [DEL_FIRST] = "SELECT min(no_o_id) FROM new_order WHERE no_w_id=?1 AND no_d_id=?2",
    [DEL_DELETE] = "DELETE FROM new_order WHERE no_w_id=?1 AND no_d_id=?2 AND no_o_id=?3",
    [DEL_CUSTOMER] = "SELECT o_c_id FROM orders WHERE o_w_id=?1 AND o_d_id=?2 AND o_id=?3",
    [DEL_CARRIER] = "UPDATE orders SET o_carrier_id=?4 WHERE o_w_id=?1 AND o_d_id=?2 AND o_id=?3",
    [DEL_DATE] = "UPDATE order_line SET ol_delivery_d=1 WHERE ol_w_id=?1 AND ol_d_id=?2"
                 " AND ol_o_id=?3",
    [DEL_SUM] = "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id=?1 AND ol_d_id=?2"
                " AND ol_o_id=?3",
    [DEL_BALANCE] = "UPDATE customer SET c_balance=c_balance+?4, c_delivery_cnt=c_delivery_cnt+1"
                    " WHERE c_w_id=?1 AND c_d_id=?2 AND c_id=?3",
    [SL_NEXT] = "SELECT d_next_o_id FROM district WHERE d_w_id=?1 AND d_id=?2",
    [SL_COUNT] = "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id=?1"
                 " AND s_i_id=ol_i_id WHERE ol_w_id=?1 AND ol_d_id=?2 AND ol_o_id>=?3-20"
                 " AND ol_o_id<?3 AND s_quantity<?4",
};

typedef struct Terminal {
    sqlite3_stmt *stmt[STATEMENTS];
    const Tpcc *tpcc;
} Terminal;

/* What one transaction does. */
typedef struct Job {
    int64_t w, d, c, amount, carrier, threshold;
    int64_t c_w, c_d; /* The paying customer's own. */
    int64_t name;     /* -1: by number. */
    int lines;
    bool is_rolled_back;
    int64_t item[TPCC_LINES_MAX], supply[TPCC_LINES_MAX], quantity[TPCC_LINES_MAX];
} Job;

void
tpcc_start(Worker *worker)
{
    Terminal *terminal = calloc(1, sizeof(Terminal));
    if (terminal == NULL) abort();
    terminal->tpcc = worker->load->arg;
    for (int i = 0; i < STATEMENTS; i++)
        terminal->stmt[i] = db_prepare(&worker->db, sql[i]);
    worker->own = terminal;
}

void
tpcc_end(Worker *worker)
{
    Terminal *terminal = worker->own;
    for (int i = 0; i < STATEMENTS; i++)
        worker->db.engine->finalize(terminal->stmt[i]);
    free(terminal);
}

static sqlite3_stmt *
bound(Worker *worker, int which, const int64_t *values, int count)
{
    Terminal *terminal = worker->own;
    for (int i = 0; i < count; i++)
        worker->db.engine->bind_int64(terminal->stmt[which], i + 1, values[i]);
    return terminal->stmt[which];
}

#define VALUES(...) \
    (const int64_t[]){__VA_ARGS__}, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / 8)
#define RUN(which, ...)      load_step(worker, bound(worker, which, VALUES(__VA_ARGS__)))
#define ASK(out, which, ...) ask(worker, bound(worker, which, VALUES(__VA_ARGS__)), out)

/* One integer that must be there. */
static int
ask(Worker *worker, sqlite3_stmt *stmt, int64_t *value_out)
{
    bool found;
    int code = load_step_int(worker, stmt, value_out, &found);
    if (code == CODE_OK && !found) {
        fprintf(stderr, "bench: tpcc: %s: a row is missing\n", worker->db.engine->name);
        exit(1);
    }
    return code;
}

/* ---- new order ---- */

static int
order_line(Worker *worker, const Job *job, int64_t order, int at)
{
    int64_t price, quantity, wanted = job->quantity[at];
    int code = ASK(&price, NO_ITEM, job->item[at]);
    if (code == CODE_OK) code = ASK(&quantity, NO_STOCK, job->supply[at], job->item[at]);
    if (code != CODE_OK) return code;
    int64_t left = quantity >= wanted + 10 ? quantity - wanted : quantity - wanted + 91;
    code = RUN(NO_STOCK_SET, job->supply[at], job->item[at], left, wanted,
               job->supply[at] != job->w);
    if (code != CODE_OK) return code;
    return RUN(NO_LINE, job->w, job->d, order, at + 1, job->item[at], job->supply[at], wanted,
               wanted * price);
}

static int
new_order_body(Worker *worker, void *arg)
{
    const Job *job = arg;
    int64_t order, value;
    bool all_local = true;
    for (int i = 0; i < job->lines; i++)
        all_local = all_local && job->supply[i] == job->w;
    int code = ASK(&order, NO_DISTRICT, job->w, job->d);
    if (code == CODE_OK) code = ASK(&value, NO_WAREHOUSE, job->w);
    if (code == CODE_OK) code = ASK(&value, NO_CUSTOMER, job->w, job->d, job->c);
    if (code == CODE_OK) code = RUN(NO_ORDER, job->w, job->d, order, job->c, job->lines, all_local);
    if (code == CODE_OK) code = RUN(NO_NEW, job->w, job->d, order);
    for (int at = 0; at < job->lines && code == CODE_OK; at++) {
        /* One order in a hundred asks for an item that does not exist, last. */
        if (job->is_rolled_back && at == job->lines - 1) {
            bool found;
            code = load_step_int(worker, bound(worker, NO_ITEM, VALUES(-1)), &value, &found);
            return code == CODE_OK ? LOAD_ROLLBACK : code;
        }
        code = order_line(worker, job, order, at);
    }
    return code;
}

static int
compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void
new_order(Worker *worker, Job *job)
{
    const Tpcc *tpcc = ((Terminal *)worker->own)->tpcc;
    job->lines = (int)random_between(&worker->state, 5, TPCC_LINES_MAX);
    job->is_rolled_back = random_between(&worker->state, 1, 100) == 1;
    for (int i = 0; i < job->lines; i++) {
        job->item[i] = tpcc_nurand(&worker->state, 8191, 1, tpcc->items);
        job->supply[i] = job->w;
        if (tpcc->warehouses > 1 && random_between(&worker->state, 1, 100) == 1)
            job->supply[i] = job->w % tpcc->warehouses + 1;
        job->quantity[i] = random_between(&worker->state, 1, 10);
    }
    /* In one order for all, so that orders do not wait for each other in a circle. */
    qsort(job->item, (size_t)job->lines, sizeof(int64_t), compare_numbers);
    if (load_transact(worker, true, new_order_body, job)) worker->acknowledged++;
}

/* ---- payment and order status ---- */

/* The middle one of the customers of that name, else the one of the number. */
static int
find_customer(Worker *worker, const Job *job, int64_t *customer_out)
{
    Terminal *terminal = worker->own;
    const Engine *e = worker->db.engine;
    char last[17];
    int64_t count = 0;
    *customer_out = job->c;
    if (job->name < 0) return CODE_OK;
    int bytes = tpcc_last_name(job->name, last);
    e->bind_text(terminal->stmt[NAME_COUNT], 3, last, bytes, NULL);
    e->bind_text(terminal->stmt[NAME_MIDDLE], 3, last, bytes, NULL);
    int code = ASK(&count, NAME_COUNT, job->c_w, job->c_d);
    if (code != CODE_OK || count == 0) return code;
    e->bind_int64(terminal->stmt[NAME_MIDDLE], 4, (count - 1) / 2);
    return ASK(customer_out, NAME_MIDDLE, job->c_w, job->c_d);
}

static int
payment_body(Worker *worker, void *arg)
{
    const Job *job = arg;
    int64_t customer, is_bad = 0;
    int code = RUN(PAY_WAREHOUSE, job->w, job->amount);
    if (code == CODE_OK) code = RUN(PAY_DISTRICT, job->w, job->d, job->amount);
    if (code == CODE_OK) code = find_customer(worker, job, &customer);
    if (code == CODE_OK) code = RUN(PAY_CUSTOMER, job->c_w, job->c_d, customer, job->amount);
    if (code == CODE_OK) code = ASK(&is_bad, CREDIT, job->c_w, job->c_d, customer);
    if (code == CODE_OK && is_bad != 0)
        code = RUN(PAY_DATA, job->c_w, job->c_d, customer, job->amount);
    if (code != CODE_OK) return code;
    return RUN(PAY_HISTORY, job->c_w, job->c_d, customer, job->w, job->d, job->amount);
}

static int
status_body(Worker *worker, void *arg)
{
    const Job *job = arg;
    int64_t customer, order, value;
    bool found = false;
    int code = find_customer(worker, job, &customer);
    if (code == CODE_OK) code = ASK(&value, OS_CUSTOMER, job->c_w, job->c_d, customer);
    if (code == CODE_OK) {
        code = load_step_int(worker, bound(worker, OS_ORDER, VALUES(job->c_w, job->c_d, customer)),
                             &order, &found);
    }
    if (code != CODE_OK || !found) return code;
    return RUN(OS_LINES, job->c_w, job->c_d, order);
}

/* ---- delivery and stock level ---- */

static int
deliver_district(Worker *worker, const Job *job, int64_t d)
{
    int64_t order, customer, amount;
    bool found;
    int code = load_step_int(worker, bound(worker, DEL_FIRST, VALUES(job->w, d)), &order, &found);
    if (code != CODE_OK || !found) return code;
    code = RUN(DEL_DELETE, job->w, d, order);
    if (code == CODE_OK) code = ASK(&customer, DEL_CUSTOMER, job->w, d, order);
    if (code == CODE_OK) code = RUN(DEL_CARRIER, job->w, d, order, job->carrier);
    if (code == CODE_OK) code = RUN(DEL_DATE, job->w, d, order);
    if (code == CODE_OK) code = ASK(&amount, DEL_SUM, job->w, d, order);
    if (code != CODE_OK) return code;
    return RUN(DEL_BALANCE, job->w, d, customer, amount);
}

static int
delivery_body(Worker *worker, void *arg)
{
    const Job *job = arg;
    int code = CODE_OK;
    for (int64_t d = 1; d <= TPCC_DISTRICTS && code == CODE_OK; d++)
        code = deliver_district(worker, job, d);
    return code;
}

static int
stock_body(Worker *worker, void *arg)
{
    const Job *job = arg;
    int64_t next, low;
    int code = ASK(&next, SL_NEXT, job->w, job->d);
    return code == CODE_OK ? ASK(&low, SL_COUNT, job->w, job->d, next, job->threshold) : code;
}

void
tpcc_operate(Worker *worker)
{
    const Tpcc *tpcc = ((Terminal *)worker->own)->tpcc;
    uint64_t *state = &worker->state;
    int64_t dice = random_between(state, 1, 100);
    int64_t names = tpcc->customers < 1000 ? tpcc->customers : 1000;
    Job job = {.w = random_between(state, 1, tpcc->warehouses),
               .d = random_between(state, 1, TPCC_DISTRICTS),
               .c = tpcc_nurand(state, 1023, 1, tpcc->customers),
               .amount = random_between(state, 100, 500000),
               .carrier = random_between(state, 1, 10),
               .threshold = random_between(state, 10, 20),
               .name = -1};
    job.c_w = job.w;
    job.c_d = job.d;
    if (random_between(state, 1, 100) <= 60) job.name = tpcc_nurand(state, 255, 0, names - 1);
    if (dice <= 45) {
        worker->kind = TPCC_NEW_ORDER;
        new_order(worker, &job);
    } else if (dice <= 88) {
        worker->kind = TPCC_PAYMENT;
        if (tpcc->warehouses > 1 && random_between(state, 1, 100) <= 15)
            job.c_w = job.w % tpcc->warehouses + 1;
        load_transact(worker, true, payment_body, &job);
    } else if (dice <= 92) {
        worker->kind = TPCC_STATUS;
        load_transact(worker, false, status_body, &job);
    } else if (dice <= 96) {
        worker->kind = TPCC_DELIVERY;
        load_transact(worker, true, delivery_body, &job);
    } else {
        worker->kind = TPCC_STOCK;
        load_transact(worker, false, stock_body, &job);
    }
}
