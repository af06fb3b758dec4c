/*
 * tpcc_load.c -- TPC-C's tables and what is in them at the start; the consistency conditions.
 */
#include <stdlib.h>
#include <string.h>

#include "tpcc.h"

static const char schema[] =
    "CREATE TABLE warehouse(w_id INTEGER PRIMARY KEY, w_name TEXT, w_street TEXT, w_city TEXT,"
    " w_zip TEXT, w_tax INT, w_ytd INT);"
    "CREATE TABLE district(d_w_id INT, d_id INT, d_name TEXT, d_street TEXT, d_city TEXT,"
    " d_zip TEXT, d_tax INT, d_ytd INT, d_next_o_id INT, PRIMARY KEY(d_w_id, d_id)) WITHOUT ROWID;"
    "CREATE TABLE customer(c_w_id INT, c_d_id INT, c_id INT, c_first TEXT, c_last TEXT,"
    " c_street TEXT, c_city TEXT, c_phone TEXT, c_since INT, c_credit TEXT, c_credit_lim INT,"
    " c_discount INT, c_balance INT, c_ytd_payment INT, c_payment_cnt INT, c_delivery_cnt INT,"
    " c_data TEXT, PRIMARY KEY(c_w_id, c_d_id, c_id)) WITHOUT ROWID;"
    "CREATE TABLE history(h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT,"
    " h_date INT, h_amount INT, h_data TEXT);"
    "CREATE TABLE new_order(no_w_id INT, no_d_id INT, no_o_id INT,"
    " PRIMARY KEY(no_w_id, no_d_id, no_o_id)) WITHOUT ROWID;"
    "CREATE TABLE orders(o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_entry_d INT,"
    " o_carrier_id INT, o_ol_cnt INT, o_all_local INT, PRIMARY KEY(o_w_id, o_d_id, o_id))"
    " WITHOUT ROWID;"
    "CREATE TABLE order_line(ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, ol_i_id INT,"
    " ol_supply_w_id INT, ol_delivery_d INT, ol_quantity INT, ol_amount INT, ol_dist_info TEXT,"
    " PRIMARY KEY(ol_w_id, ol_d_id, ol_o_id, ol_number)) WITHOUT ROWID;"
    "CREATE TABLE item(i_id INTEGER PRIMARY KEY, i_im_id INT, i_name TEXT, i_price INT,"
    " i_data TEXT);"
    "CREATE TABLE stock(s_w_id INT, s_i_id INT, s_quantity INT, s_dist_01 TEXT, s_dist_02 TEXT,"
    " s_dist_03 TEXT, s_dist_04 TEXT, s_dist_05 TEXT, s_dist_06 TEXT, s_dist_07 TEXT,"
    " s_dist_08 TEXT, s_dist_09 TEXT, s_dist_10 TEXT, s_ytd INT, s_order_cnt INT,"
    " s_remote_cnt INT, s_data TEXT, PRIMARY KEY(s_w_id, s_i_id)) WITHOUT ROWID;";

static const char indexes[] =
    "CREATE INDEX customer_name ON customer(c_w_id, c_d_id, c_last, c_first);"
    "CREATE INDEX orders_customer ON orders(o_w_id, o_d_id, o_c_id, o_id);";

int64_t
tpcc_nurand(uint64_t *state, int64_t a, int64_t least, int64_t most)
{
    int64_t low = random_between(state, 0, a), high = random_between(state, least, most);
    return ((low | high) + 123) % (most - least + 1) + least;
}

int
tpcc_last_name(int64_t number, char *out)
{
    static const char *const part[] = {"BAR", "OUGHT", "ABLE",  "PRI",   "PRES",
                                       "ESE", "ANTI",  "CALLY", "ATION", "EING"};
    return snprintf(out, 17, "%s%s%s", part[number / 100 % 10], part[number / 10 % 10],
                    part[number % 10]);
}

typedef struct Fill {
    Db db;
    sqlite3_stmt *stmt;
    int column;
    uint64_t state;
} Fill;

static void
number(Fill *fill, int64_t value)
{
    fill->db.engine->bind_int64(fill->stmt, ++fill->column, value);
}

/* A random text of `least` to `most` letters. */
static void
text(Fill *fill, int64_t least, int64_t most)
{
    char out[512];
    int64_t bytes = random_between(&fill->state, least, most);
    for (int64_t i = 0; i < bytes; i++)
        out[i] = (char)('a' + random_next(&fill->state) % 26);
    fill->db.engine->bind_text(fill->stmt, ++fill->column, out, (int)bytes,
                               (void (*)(void *))(intptr_t)-1);
}

static void
numbers(Fill *fill, const int64_t *values, int count)
{
    for (int i = 0; i < count; i++)
        number(fill, values[i]);
}

static void
row(Fill *fill)
{
    db_run(&fill->db, fill->stmt);
    fill->column = 0;
}

static void
into(Fill *fill, const char *sql)
{
    if (fill->stmt != NULL) fill->db.engine->finalize(fill->stmt);
    fill->stmt = sql == NULL ? NULL : db_prepare(&fill->db, sql);
    fill->column = 0;
}

static void
fill_items(Fill *fill, const Tpcc *tpcc)
{
    into(fill, "INSERT INTO item VALUES(?,?,?,?,?)");
    for (int64_t i = 1; i <= tpcc->items; i++) {
        number(fill, i);
        number(fill, random_between(&fill->state, 1, 10000));
        text(fill, 14, 24);
        number(fill, random_between(&fill->state, 100, 10000));
        text(fill, 26, 50);
        row(fill);
    }
    into(fill, "INSERT INTO stock VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,0,0,0,?)");
    for (int64_t w = 1; w <= tpcc->warehouses; w++) {
        for (int64_t i = 1; i <= tpcc->items; i++) {
            number(fill, w);
            number(fill, i);
            number(fill, random_between(&fill->state, 10, 100));
            for (int d = 0; d < 10; d++)
                text(fill, 24, 24);
            text(fill, 26, 50);
            row(fill);
        }
    }
}

static void
fill_customers(Fill *fill, const Tpcc *tpcc, int64_t w, int64_t d)
{
    into(fill,
         "INSERT INTO customer VALUES(?1,?2,?3,?4,?5,?6,?7,'0123456789012345',0,?8,5000000,?9,"
         "-1000,1000,1,0,?10)");
    for (int64_t c = 1; c <= tpcc->customers; c++) {
        char last[17];
        int64_t name = c <= 1000 ? c - 1 : tpcc_nurand(&fill->state, 255, 0, 999);
        int bytes = tpcc_last_name(name % (tpcc->customers < 1000 ? tpcc->customers : 1000), last);
        numbers(fill, (const int64_t[]){w, d, c}, 3);
        text(fill, 8, 16);
        fill->db.engine->bind_text(fill->stmt, ++fill->column, last, bytes,
                                   (void (*)(void *))(intptr_t)-1);
        text(fill, 10, 20);
        text(fill, 10, 20);
        bool is_bad = random_between(&fill->state, 1, 10) == 1;
        fill->db.engine->bind_text(fill->stmt, ++fill->column, is_bad ? "BC" : "GC", 2, NULL);
        number(fill, random_between(&fill->state, 0, 5000));
        text(fill, 300, 500);
        row(fill);
    }
    into(fill, "INSERT INTO history VALUES(?3,?2,?1,?2,?1,0,1000,?4)");
    for (int64_t c = 1; c <= tpcc->customers; c++) {
        numbers(fill, (const int64_t[]){w, d, c}, 3);
        text(fill, 12, 24);
        row(fill);
    }
}

static void
fill_lines(Fill *fill, const Tpcc *tpcc, int64_t w, int64_t d, const int *lines)
{
    int64_t undelivered = tpcc->customers - tpcc->customers * 3 / 10;
    into(fill, "INSERT INTO order_line VALUES(?1,?2,?3,?4,?5,?1,?6,5,?7,?8)");
    for (int64_t o = 1; o <= tpcc->customers; o++) {
        for (int line = 1; line <= lines[o]; line++) {
            numbers(fill, (const int64_t[]){w, d, o, line}, 4);
            number(fill, random_between(&fill->state, 1, tpcc->items));
            if (o > undelivered) {
                fill->db.engine->bind_null(fill->stmt, ++fill->column);
                number(fill, random_between(&fill->state, 1, 999999));
            } else {
                number(fill, 1);
                number(fill, 0);
            }
            text(fill, 24, 24);
            row(fill);
        }
    }
}

static void
fill_orders(Fill *fill, const Tpcc *tpcc, int64_t w, int64_t d)
{
    size_t orders = (size_t)tpcc->customers;
    int64_t undelivered = tpcc->customers - tpcc->customers * 3 / 10;
    int64_t *customer = calloc(orders + 1, sizeof(int64_t));
    int *lines = calloc(orders + 1, sizeof(int));
    if (customer == NULL || lines == NULL) abort();
    for (int64_t o = 1; o <= tpcc->customers; o++)
        customer[o] = o;
    for (int64_t o = tpcc->customers; o > 1; o--) {
        int64_t other = random_between(&fill->state, 1, o), kept = customer[o];
        customer[o] = customer[other];
        customer[other] = kept;
    }
    into(fill, "INSERT INTO orders VALUES(?,?,?,?,0,?,?,1)");
    for (int64_t o = 1; o <= tpcc->customers; o++) {
        lines[o] = (int)random_between(&fill->state, 5, TPCC_LINES_MAX);
        numbers(fill, (const int64_t[]){w, d, o, customer[o]}, 4);
        if (o > undelivered)
            fill->db.engine->bind_null(fill->stmt, ++fill->column);
        else
            number(fill, random_between(&fill->state, 1, 10));
        number(fill, lines[o]);
        row(fill);
    }
    into(fill, "INSERT INTO new_order VALUES(?,?,?)");
    for (int64_t o = undelivered + 1; o <= tpcc->customers; o++) {
        numbers(fill, (const int64_t[]){w, d, o}, 3);
        row(fill);
    }
    fill_lines(fill, tpcc, w, d, lines);
    free(customer);
    free(lines);
}

void
tpcc_fill(Tpcc *tpcc)
{
    Fill fill = {.state = 88172645463325252u};
    db_remove(tpcc->path);
    fill.db = db_open(tpcc->engine, tpcc->path, (DbMode){0});
    db_exec(&fill.db, schema);
    db_exec(&fill.db, "BEGIN");
    fill_items(&fill, tpcc);
    for (int64_t w = 1; w <= tpcc->warehouses; w++) {
        into(&fill, "INSERT INTO warehouse VALUES(?1,'warehouse','street','city','12345',?2,?3)");
        numbers(&fill, (const int64_t[]){w, w * 37 % 2000, tpcc->customers * 10000}, 3);
        row(&fill);
        for (int64_t d = 1; d <= TPCC_DISTRICTS; d++) {
            into(&fill,
                 "INSERT INTO district VALUES(?,?,'district','street','city','12345',?,?,?)");
            numbers(&fill,
                    (const int64_t[]){w, d, d * 131 % 2000, tpcc->customers * 1000,
                                      tpcc->customers + 1},
                    5);
            row(&fill);
            fill_customers(&fill, tpcc, w, d);
            fill_orders(&fill, tpcc, w, d);
        }
        db_exec(&fill.db, "COMMIT; BEGIN");
    }
    into(&fill, NULL);
    db_exec(&fill.db, "COMMIT");
    db_exec(&fill.db, indexes);
    db_close(&fill.db);
}

/* Each must give 0. */
static const char *const conditions[] = {
    "SELECT count(*) FROM warehouse WHERE w_ytd <>"
    " (SELECT sum(d_ytd) FROM district WHERE d_w_id=w_id)",
    "SELECT count(*) FROM district WHERE d_next_o_id-1 <>"
    " (SELECT max(o_id) FROM orders WHERE o_w_id=d_w_id AND o_d_id=d_id)"
    " OR d_next_o_id-1 < (SELECT max(no_o_id) FROM new_order WHERE no_w_id=d_w_id AND "
    "no_d_id=d_id)",
    "SELECT count(*) FROM (SELECT max(no_o_id)-min(no_o_id)+1-count(*) AS off FROM new_order"
    " GROUP BY no_w_id, no_d_id) WHERE off<>0",
    "SELECT count(*) FROM district WHERE"
    " (SELECT sum(o_ol_cnt) FROM orders WHERE o_w_id=d_w_id AND o_d_id=d_id) <>"
    " (SELECT count(*) FROM order_line WHERE ol_w_id=d_w_id AND ol_d_id=d_id)",
};

void
tpcc_check(Bench *bench, const Tpcc *tpcc, const char *after)
{
    Db db = db_open(tpcc->engine, tpcc->path, (DbMode){0});
    for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
        int64_t off = db_int(&db, conditions[i]);
        if (off == 0) continue;
        bench_fail(bench, "%s, after %s: TPC-C's condition %d does not hold in %lld places",
                   tpcc->engine->name, after, (int)i + 1, (long long)off);
    }
    int64_t orders = db_int(&db, "SELECT count(*) FROM orders");
    int64_t expected = tpcc->customers * TPCC_DISTRICTS * tpcc->warehouses + tpcc->new_orders;
    if (orders != expected) {
        bench_fail(bench, "%s, after %s: %lld orders, %lld with those acknowledged",
                   tpcc->engine->name, after, (long long)orders, (long long)expected);
    }
    db_close(&db);
}
