/*
 * tpch.c -- TPC-H's tables from a generator of our own, and its queries 1, 3, 5, 6, 9, 13 and 18.
 *
 * Cardinalities and value ranges are the specification's, the texts are not.  Money is in cents and
 * discounts in hundredths, so that sums are exact and can be compared.  --tpch is the scale in
 * thousandths.
 */
#include "tpch.h"

#include <string.h>

static const char schema[] =
    "CREATE TABLE nation(n_nationkey INTEGER PRIMARY KEY, n_name TEXT, n_regionkey INT);"
    "CREATE TABLE region(r_regionkey INTEGER PRIMARY KEY, r_name TEXT);"
    "CREATE TABLE supplier(s_suppkey INTEGER PRIMARY KEY, s_nationkey INT);"
    "CREATE TABLE customer(c_custkey INTEGER PRIMARY KEY, c_name TEXT, c_nationkey INT,"
    " c_mktsegment TEXT);"
    "CREATE TABLE part(p_partkey INTEGER PRIMARY KEY, p_name TEXT);"
    "CREATE TABLE partsupp(ps_partkey INT, ps_suppkey INT, ps_supplycost INT,"
    " PRIMARY KEY(ps_partkey, ps_suppkey));"
    "CREATE TABLE orders(o_orderkey INTEGER PRIMARY KEY, o_custkey INT, o_totalprice INT,"
    " o_orderdate TEXT, o_shippriority INT, o_comment TEXT);"
    "CREATE TABLE lineitem(l_orderkey INT, l_linenumber INT, l_partkey INT, l_suppkey INT,"
    " l_quantity INT, l_extendedprice INT, l_discount INT, l_tax INT, l_returnflag TEXT,"
    " l_linestatus TEXT, l_shipdate TEXT, PRIMARY KEY(l_orderkey, l_linenumber));";

#define REVENUE "sum(l_extendedprice*(100-l_discount))"

static const Workload works[] = {
    {"analytic.tpch_1",
     "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), " REVENUE ","
     " sum(l_extendedprice*(100-l_discount)*(100+l_tax)), avg(l_quantity), avg(l_extendedprice),"
     " avg(l_discount), count(*) FROM lineitem WHERE l_shipdate<='1998-09-02'"
     " GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
     1, all_columns, false, 5.0},
    {"analytic.tpch_3",
     "SELECT l_orderkey, " REVENUE " AS revenue, o_orderdate, o_shippriority"
     " FROM customer, orders, lineitem WHERE c_mktsegment='BUILDING' AND c_custkey=o_custkey"
     " AND l_orderkey=o_orderkey AND o_orderdate<'1995-03-15' AND l_shipdate>'1995-03-15'"
     " GROUP BY l_orderkey, o_orderdate, o_shippriority"
     " ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10",
     1, all_columns, false, 5.0},
    {"analytic.tpch_5",
     "SELECT n_name, " REVENUE " AS revenue"
     " FROM customer, orders, lineitem, supplier, nation, region"
     " WHERE c_custkey=o_custkey AND l_orderkey=o_orderkey AND l_suppkey=s_suppkey"
     " AND c_nationkey=s_nationkey AND s_nationkey=n_nationkey AND n_regionkey=r_regionkey"
     " AND r_name='ASIA' AND o_orderdate>='1994-01-01' AND o_orderdate<'1995-01-01'"
     " GROUP BY n_name ORDER BY revenue DESC",
     1, all_columns, false, 5.0},
    {"analytic.tpch_6",
     "SELECT sum(l_extendedprice*l_discount) FROM lineitem WHERE l_shipdate>='1994-01-01'"
     " AND l_shipdate<'1995-01-01' AND l_discount BETWEEN 5 AND 7 AND l_quantity<24",
     1, all_columns, false, 5.0},
    {"analytic.tpch_9",
     "SELECT nation, o_year, sum(amount) FROM (SELECT n_name AS nation,"
     " substr(o_orderdate, 1, 4) AS o_year,"
     " l_extendedprice*(100-l_discount)-ps_supplycost*l_quantity*100 AS amount"
     " FROM part, supplier, lineitem, partsupp, orders, nation WHERE s_suppkey=l_suppkey"
     " AND ps_suppkey=l_suppkey AND ps_partkey=l_partkey AND p_partkey=l_partkey"
     " AND o_orderkey=l_orderkey AND s_nationkey=n_nationkey AND p_name LIKE '%green%') AS profit"
     " GROUP BY nation, o_year ORDER BY nation, o_year DESC",
     1, all_columns, false, 5.0},
    {"analytic.tpch_13",
     "SELECT c_count, count(*) AS custdist FROM (SELECT c_custkey, count(o_orderkey) AS c_count"
     " FROM customer LEFT JOIN orders ON c_custkey=o_custkey"
     " AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey) AS c_orders"
     " GROUP BY c_count ORDER BY custdist DESC, c_count DESC",
     1, all_columns, false, 5.0},
    {"analytic.tpch_18",
     "SELECT o_orderkey, c_name, c_custkey, o_orderdate, o_totalprice, sum(l_quantity)"
     " FROM customer, orders, lineitem WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem"
     " GROUP BY l_orderkey HAVING sum(l_quantity)>300) AND c_custkey=o_custkey"
     " AND o_orderkey=l_orderkey GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice"
     " ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100",
     1, all_columns, false, 5.0},
};

typedef struct Maker {
    Run *run;
    sqlite3_stmt *stmt;
    int column;
} Maker;

static int64_t
draw(Maker *maker, int64_t least, int64_t most)
{
    return random_between(&maker->run->state, least, most);
}

static void
number(Maker *maker, int64_t value)
{
    maker->run->db.engine->bind_int64(maker->stmt, ++maker->column, value);
}

static void
text(Maker *maker, const char *value)
{
    /* Copied by the engine: the caller's buffer does not last. */
    maker->run->db.engine->bind_text(maker->stmt, ++maker->column, value, -1,
                                     (void (*)(void *))(intptr_t)-1);
}

static void
row(Maker *maker)
{
    db_run(&maker->run->db, maker->stmt);
    maker->column = 0;
}

static void
into(Maker *maker, const char *sql)
{
    maker->stmt = db_prepare(&maker->run->db, sql);
    maker->column = 0;
}

static void
done(Maker *maker)
{
    maker->run->db.engine->finalize(maker->stmt);
}

/* The day `days` after 1992-01-01, as text. */
static void
date_text(int64_t days, char out[40])
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = 1992, month = 0;
    for (int length = 366; days >= length; length = year % 4 == 0 ? 366 : 365) {
        days -= length;
        year++;
    }
    while (days >= lengths[month] + (month == 1 && year % 4 == 0)) {
        days -= lengths[month] + (month == 1 && year % 4 == 0);
        month++;
    }
    snprintf(out, 40, "%04d-%02d-%02d", year, month + 1, (int)days + 1);
}

static void
words(Maker *maker, int count, char *out, size_t size)
{
    static const char *const word[] = {"green",    "special", "requests", "almond",  "blue",
                                       "deposits", "quickly", "slow",     "furious", "ivory",
                                       "packages", "final",   "even",     "linen",   "theodolites",
                                       "unusual",  "pending", "accounts", "tomato",  "sky"};
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < count && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i == 0 ? "" : " ",
                               word[draw(maker, 0, 19)]);
}

static void
fill_small(Maker *maker, int64_t scale)
{
    static const char *const regions[] = {"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"};
    static const char *const segments[] = {"AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD",
                                           "MACHINERY"};
    char name[160];
    into(maker, "INSERT INTO region VALUES(?,?)");
    for (int i = 0; i < 5; i++) {
        number(maker, i);
        text(maker, regions[i]);
        row(maker);
    }
    done(maker);
    into(maker, "INSERT INTO nation VALUES(?,?,?)");
    for (int i = 0; i < 25; i++) {
        snprintf(name, sizeof(name), "NATION %02d", i);
        number(maker, i);
        text(maker, name);
        number(maker, i % 5);
        row(maker);
    }
    done(maker);
    into(maker, "INSERT INTO supplier VALUES(?,?)");
    for (int64_t i = 1; i <= 10 * scale; i++) {
        number(maker, i);
        number(maker, draw(maker, 0, 24));
        row(maker);
    }
    done(maker);
    into(maker, "INSERT INTO customer VALUES(?,?,?,?)");
    for (int64_t i = 1; i <= 150 * scale; i++) {
        snprintf(name, sizeof(name), "Customer#%09lld", (long long)i);
        number(maker, i);
        text(maker, name);
        number(maker, draw(maker, 0, 24));
        text(maker, segments[draw(maker, 0, 4)]);
        row(maker);
    }
    done(maker);
}

/* Four suppliers a part; a line of an order names one of them. */
static int64_t
supplier_of(int64_t part, int64_t which, int64_t scale)
{
    int64_t suppliers = 10 * scale;
    return (part + which * (suppliers / 4 + 1)) % suppliers + 1;
}

static void
fill_parts(Maker *maker, int64_t scale)
{
    char name[160];
    into(maker, "INSERT INTO part VALUES(?,?)");
    for (int64_t i = 1; i <= 200 * scale; i++) {
        words(maker, 5, name, sizeof(name));
        number(maker, i);
        text(maker, name);
        row(maker);
    }
    done(maker);
    into(maker, "INSERT INTO partsupp VALUES(?,?,?)");
    for (int64_t i = 1; i <= 200 * scale; i++) {
        for (int64_t which = 0; which < 4; which++) {
            number(maker, i);
            number(maker, supplier_of(i, which, scale));
            number(maker, draw(maker, 100, 100000));
            row(maker);
        }
    }
    done(maker);
}

static int64_t
fill_line(Maker *maker, int64_t scale, int64_t order, int64_t line, int64_t day)
{
    char date[40];
    int64_t part = draw(maker, 1, 200 * scale), quantity = draw(maker, 1, 50);
    int64_t price = quantity * (90000 + part / 10 % 20001 + 100 * (part % 1000)) / 10;
    int64_t shipped = day + draw(maker, 1, 121);
    number(maker, order);
    number(maker, line);
    number(maker, part);
    number(maker, supplier_of(part, draw(maker, 0, 3), scale));
    number(maker, quantity);
    number(maker, price);
    number(maker, draw(maker, 0, 10));
    number(maker, draw(maker, 0, 8));
    bool is_old = shipped + 15 <= 1263; /* Before 1995-06-17. */
    text(maker, !is_old ? "N" : draw(maker, 0, 1) == 0 ? "R" : "A");
    text(maker, shipped > 1263 ? "O" : "F");
    date_text(shipped, date);
    text(maker, date);
    row(maker);
    return price;
}

static void
fill_orders(Maker *orders, Maker *lines, int64_t scale)
{
    char date[40], comment[160];
    into(orders, "INSERT INTO orders VALUES(?1,?2,?3,?4,0,?5)");
    into(lines, "INSERT INTO lineitem VALUES(?,?,?,?,?,?,?,?,?,?,?)");
    for (int64_t i = 1; i <= 1500 * scale; i++) {
        int64_t day = draw(orders, 0, 2405), total = 0, count = draw(orders, 1, 7);
        int64_t customer = draw(orders, 1, 150 * scale);
        /* A third of the customers never order. */
        if (customer % 3 == 0) customer = customer % (150 * scale) + 1;
        for (int64_t line = 1; line <= count; line++)
            total += fill_line(lines, scale, i, line, day);
        date_text(day, date);
        words(orders, 8, comment, sizeof(comment));
        number(orders, i);
        number(orders, customer);
        number(orders, total);
        text(orders, date);
        text(orders, comment);
        row(orders);
    }
    done(orders);
    done(lines);
}

static void
fill(Run *run)
{
    Maker maker = {.run = run}, lines = {.run = run};
    int64_t scale = run->options->tpch_permille;
    db_exec(&run->db, schema);
    db_exec(&run->db, "BEGIN");
    fill_small(&maker, scale);
    fill_parts(&maker, scale);
    fill_orders(&maker, &lines, scale);
    db_exec(&run->db, "COMMIT; CREATE INDEX orders_customer ON orders(o_custkey);"
                      "CREATE INDEX lineitem_part ON lineitem(l_partkey, l_suppkey); ANALYZE");
}

void
tpch_run(Bench *bench)
{
    Run run[2];
    bool is_wanted = false;
    for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
        is_wanted = is_wanted || bench_wants(bench, works[i].name);
    if (!is_wanted) return;
    printf("# TPC-H at scale %.3f\n", (double)bench->options.tpch_permille / 1000);
    single_open(bench, run, NULL, fill);
    single_run(bench, run, works, sizeof(works) / sizeof(works[0]));
    single_close(bench, run);
}
