/*
 * join_diff_test.c -- joins and subqueries give what SQLite gives, whichever way they are run.
 *
 * Method: random SELECTs over a few small tables, joined in every way, with subqueries of all kinds
 * in WHERE, ON and the results.  Each runs on the real SQLite and here five times: as planned, with
 * hash joins in the place of all look-ups, without hash joins, with subqueries as they stand, and
 * without any rewriting.  The sorted rows must agree; where SQLite is not asked, the rows of the
 * first two runs must agree in order too.
 */
#include <stdlib.h>

#include "unit/exec/sql_kit.h"

static u32 statements_wanted = 500;
static u64 seed = 20261130;

static const char *const setup[] = {
    "CREATE TABLE p(id INTEGER PRIMARY KEY, a INT, b TEXT COLLATE NOCASE, c)",
    "CREATE TABLE q(x INT, y INT, z TEXT)",
    "CREATE TABLE r(k TEXT, m INT, n INT, PRIMARY KEY(k, m)) WITHOUT ROWID",
    "CREATE TABLE s(u INT UNIQUE, v INT NOT NULL, w)",
    "CREATE INDEX p_a ON p(a)",
    "CREATE INDEX q_xy ON q(x, y)",
    "CREATE INDEX q_z ON q(z)",
    "CREATE INDEX s_w ON s(w) WHERE w IS NOT NULL",
    "INSERT INTO p VALUES(1,1,'one',1),(2,1,'One','1'),(3,2,'two',NULL),(4,NULL,'TWO',3),"
    "(5,3,NULL,'3'),(6,5,'five',5),(7,2,'three',2),(8,8,'x','x'),(9,NULL,NULL,NULL)",
    "INSERT INTO q VALUES(1,1,'one'),(1,2,'two'),(2,NULL,'ONE'),(NULL,3,'three'),(3,3,NULL),"
    "(3,1,'five'),(5,5,'1'),(8,2,'2'),(1,1,'one'),(2,4,'x')",
    "INSERT INTO r VALUES('one',1,1),('one',2,5),('two',1,NULL),('x',3,2),('three',1,3),('1',1,8)",
    "INSERT INTO s VALUES(1,1,1),(2,1,'1'),(3,3,NULL),(NULL,2,'x'),(NULL,5,2),(5,0,5),(9,9,9)",
};

typedef struct Table {
    const char *name;
    const char *column[4];
    u32 columns;
} Table;

static const Table tables[] = {
    {"p", {"id", "a", "b", "c"}, 4},
    {"q", {"x", "y", "z"}, 3},
    {"r", {"k", "m", "n"}, 3},
    {"s", {"u", "v", "w"}, 3},
};

typedef struct Make {
    Rng rng;
    Buf out;
    u32 names;              /* Aliases given so far. */
    const Table *table[16]; /* By alias. */
    u32 visible[16], visible_count;
} Make;

static void
put(Make *make, const char *text)
{
    assert_int_equal(buf_append_text(&make->out, text), OK);
}

static void
put_number(Make *make, u32 number)
{
    assert_int_equal(buf_printf(&make->out, "%u", number), OK);
}

static u32
pick(Make *make, u32 count)
{
    return (u32)rng_below(&make->rng, count);
}

static void
put_column_of(Make *make, u32 alias)
{
    put(make, "t");
    put_number(make, alias);
    put(make, ".");
    put(make, make->table[alias]->column[pick(make, make->table[alias]->columns)]);
}

static void
put_column(Make *make)
{
    put_column_of(make, make->visible[pick(make, make->visible_count)]);
}

static void
put_literal(Make *make)
{
    static const char *const literals[] = {"1", "2", "3", "'one'", "'1'", "'TWO'", "5", "NULL"};
    put(make, literals[pick(make, COUNT_OF(literals))]);
}

static u32
put_table(Make *make)
{
    u32 alias = make->names++;
    make->table[alias] = &tables[pick(make, COUNT_OF(tables))];
    put(make, make->table[alias]->name);
    put(make, " t");
    put_number(make, alias);
    return alias;
}

/* A comparison of the newest table with what is visible besides. */
static void
put_link(Make *make, u32 alias)
{
    static const char *const ops[] = {"=", "=", "=", "=", "=", "IS", "<", ">=", "<>"};
    bool turned = pick(make, 2) == 0;
    if (turned) put_column(make);
    if (!turned) put_column_of(make, alias);
    put(make, " ");
    put(make, ops[pick(make, COUNT_OF(ops))]);
    put(make, " ");
    if (turned) put_column_of(make, alias);
    if (!turned) put_column(make);
    if (pick(make, 12) == 0) put(make, " COLLATE NOCASE");
}

static void put_term(Make *make, u32 depth);

static void
put_where(Make *make, u32 alias, u32 depth, bool linked)
{
    u32 count = pick(make, 3);
    put(make, " WHERE ");
    if (linked) {
        put_link(make, alias);
    } else {
        put_term(make, depth);
    }
    for (u32 i = 0; i < count; i++) {
        put(make, " AND ");
        put_term(make, depth);
    }
}

/* " FROM table [JOIN table] WHERE ..." inside of a subquery; returns its first alias. */
static u32
put_sub_from(Make *make, u32 depth, bool *joined_out)
{
    put(make, " FROM ");
    u32 alias = put_table(make);
    *joined_out = pick(make, 5) == 0 && make->names < 10;
    if (*joined_out) {
        put(make, pick(make, 2) ? " JOIN " : " LEFT JOIN ");
        u32 second = put_table(make);
        make->visible[make->visible_count++] = alias;
        put(make, " ON ");
        put_link(make, second);
        make->visible[make->visible_count++] = second;
    }
    u32 outer = make->visible_count;
    if (pick(make, 6) > 0) {
        bool linked = pick(make, 4) > 0;
        if (!linked) make->visible[make->visible_count++] = alias;
        if (linked && pick(make, 3) == 0 && !*joined_out) {
            put(make, " WHERE ");
            put_link(make, alias);
            put(make, " AND ");
            put_link(make, alias);
        } else {
            put_where(make, alias, depth, linked);
        }
    }
    make->visible_count = outer;
    return alias;
}

static void
put_exists(Make *make, u32 depth)
{
    bool joined;
    u32 before = make->visible_count;
    put(make, pick(make, 2) ? "EXISTS(SELECT 1" : "NOT EXISTS(SELECT 1");
    (void)put_sub_from(make, depth, &joined);
    put(make, ")");
    make->visible_count = before;
}

static void
put_in(Make *make, u32 depth)
{
    u32 before = make->visible_count;
    bool joined;
    put_column(make);
    put(make, pick(make, 2) ? " IN (SELECT " : " NOT IN (SELECT ");
    /* The table to come is known beforehand. */
    Rng at = make->rng;
    u32 length = (u32)make->out.bytes, alias = make->names;
    put(make, " FROM ");
    (void)put_table(make);
    const Table *table = make->table[alias];
    make->out.bytes = length;
    make->names = alias;
    make->rng = at;
    put(make, "t");
    put_number(make, alias);
    put(make, ".");
    put(make, table->column[alias % table->columns]);
    (void)put_sub_from(make, depth, &joined);
    put(make, ")");
    make->visible_count = before;
}

static void
put_scalar(Make *make, u32 depth)
{
    static const char *const calls[] = {"count(*)", "count(", "sum(", "min(", "max(", "total("};
    u32 before = make->visible_count, call = pick(make, COUNT_OF(calls));
    bool joined;
    put(make, "(SELECT ");
    if (pick(make, 5) == 0) put(make, "1+");
    put(make, calls[call]);
    Rng at = make->rng;
    u32 length = (u32)make->out.bytes, alias = make->names;
    put(make, " FROM ");
    (void)put_table(make);
    const Table *table = make->table[alias];
    make->out.bytes = length;
    make->names = alias;
    make->rng = at;
    if (call > 0) {
        put(make, "t");
        put_number(make, alias);
        put(make, ".");
        /* Among equal values of different kinds any may be shown: integers only. */
        const char *column = table->column[1];
        put(make, column);
        put(make, ")");
    }
    (void)put_sub_from(make, depth, &joined);
    put(make, ")");
    make->visible_count = before;
}

static void
put_term(Make *make, u32 depth)
{
    static const char *const ops[] = {"=", "=", "<", ">", "<>", "IS", "IS NOT", ">="};
    u32 kind = pick(make, depth > 0 && make->names < 10 ? 10 : 4);
    switch (kind) {
    case 0:
        put_column(make);
        put(make, pick(make, 2) ? " IS NULL" : " IN (1, 2, '3', 'one')");
        break;
    case 1:
        put(make, "(");
        put_term(make, depth > 0 ? depth - 1 : 0);
        put(make, " OR ");
        put_term(make, 0);
        put(make, ")");
        break;
    case 2:
    case 3:
        put_column(make);
        put(make, " ");
        put(make, ops[pick(make, COUNT_OF(ops))]);
        put(make, " ");
        if (pick(make, 2))
            put_column(make);
        else
            put_literal(make);
        break;
    case 4:
    case 5: put_exists(make, depth - 1); break;
    case 6:
    case 7: put_in(make, depth - 1); break;
    default:
        put_column(make);
        put(make, " ");
        put(make, ops[pick(make, COUNT_OF(ops))]);
        put(make, " ");
        put_scalar(make, depth - 1);
        break;
    }
}

static void
make_select(Make *make)
{
    static const char *const joins[] = {" JOIN ", " LEFT JOIN ",  " JOIN ",      " LEFT JOIN ",
                                        ", ",     " RIGHT JOIN ", " FULL JOIN ", " CROSS JOIN "};
    Buf from = make->out;
    make->out = (Buf){0};
    make->names = make->visible_count = 0;
    make->visible[make->visible_count++] = put_table(make);
    u32 count = pick(make, 3);
    for (u32 i = 0; i < count; i++) {
        u32 join = pick(make, pick(make, 3) ? 5 : COUNT_OF(joins));
        put(make, joins[join]);
        u32 alias = put_table(make);
        if (join != 4 && (join != 7 || pick(make, 2))) {
            put(make, " ON ");
            put_link(make, alias);
            make->visible[make->visible_count++] = alias;
            if (pick(make, 4) == 0) {
                put(make, " AND ");
                put_term(make, 1);
            }
        } else {
            make->visible[make->visible_count++] = alias;
        }
    }
    Buf tables_text = make->out;
    make->out = from;
    put(make, "SELECT ");
    for (u32 i = 0; i < 3; i++) {
        if (i > 0) put(make, ", ");
        put_column(make);
    }
    if (pick(make, 3) == 0) {
        put(make, ", ");
        put_scalar(make, 1);
    }
    put(make, " FROM ");
    assert_int_equal(buf_append(&make->out, tables_text.p, tables_text.bytes), OK);
    buf_free(&tables_text);
    if (pick(make, 5) > 0) put_where(make, make->visible[make->visible_count - 1], 2, false);
}

/* ---- comparing ---- */

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of a result in order of their text. */
static void
sort_lines(Buf *buf)
{
    u32 count = 0;
    Buf sorted = {0};
    char *text = (char *)buf->p, *end = text + strlen(text);
    char **line = malloc(sizeof(*line) * (buf->bytes + 1));
    for (char *at = text; at < end;) {
        char *stop = strchr(at, '\n');
        if (stop == NULL) stop = end;
        *stop = 0;
        line[count++] = at;
        at = stop + 1;
    }
    qsort(line, count, sizeof(*line), by_text);
    for (u32 i = 0; i < count; i++) {
        sql_kit_text(&sorted, line[i]);
        sql_kit_text(&sorted, "\n");
    }
    assert_int_equal(buf_append_byte(&sorted, 0), OK);
    free(line);
    buf_free(buf);
    *buf = sorted;
}

enum { AS_PLANNED, HASHED, LOOPED, AS_WRITTEN, PLAIN, MODES };
static const char *const mode_names[MODES] = {"as planned", "hash joins", "loops", "as written",
                                              "plain"};

static void
set_mode(PlanContext *ctx, u32 mode)
{
    ctx->no_loop_index = mode == HASHED;
    ctx->no_hash_join = mode == LOOPED;
    ctx->no_decorrelation = mode == AS_WRITTEN;
    ctx->plain = mode == PLAIN;
}

static bool
run_modes(SqlKit *kit, const char *sql)
{
    bool same = true;
    sql_kit_theirs(kit, sql);
    sort_lines(&kit->theirs);
    for (u32 mode = 0; mode < MODES && same; mode++) {
        set_mode(&kit->ctx, mode);
        sql_kit_ours(kit, sql);
        sort_lines(&kit->ours);
        same = strcmp((char *)kit->ours.p, (char *)kit->theirs.p) == 0;
        if (same) continue;
        print_message("%s\n--- ours (%s):\n%s\n--- SQLite:\n%s\n", sql, mode_names[mode],
                      (const char *)kit->ours.p, (const char *)kit->theirs.p);
    }
    set_mode(&kit->ctx, AS_PLANNED);
    return same;
}

static void
random_joins_agree(void **state)
{
    (void)state;
    SqlKit kit;
    Make make = {0};
    if (sqlite3_libversion_number() < 3039000) skip();
    rng_seed(&make.rng, seed);
    sql_kit_open(&kit);
    for (size_t i = 0; i < COUNT_OF(setup); i++)
        sql_kit_same(&kit, setup[i]);
    u32 failures = 0;
    for (u32 i = 0; i < statements_wanted && failures < 5; i++) {
        buf_clear(&make.out);
        make_select(&make);
        assert_int_equal(buf_append_byte(&make.out, 0), OK);
        kit.env.batch_rows = (u32[]){0, 1, 2, 3, 2048}[i % 5];
        if (!run_modes(&kit, (const char *)make.out.p)) failures++;
    }
    assert_int_equal(failures, 0);
    buf_free(&make.out);
    sql_kit_close(&kit);
}

/* A hash join that stands for look-ups gives the rows in the order of the look-ups. */
static void
hashed_look_ups_keep_their_order(void **state)
{
    (void)state;
    static const char *const statements[] = {
        "SELECT t0.id, t1.x, t1.y, t1.z FROM p t0 CROSS JOIN q t1 ON t1.x=t0.a",
        "SELECT t0.id, t1.x, t1.y FROM p t0 CROSS JOIN q t1 ON t1.x=t0.a",
        "SELECT t0.id, t1.* FROM p t0 LEFT JOIN r t1 ON t1.k=t0.b COLLATE BINARY",
        "SELECT t0.x, t1.* FROM q t0 CROSS JOIN p t1 ON t1.id=t0.y",
        "SELECT t0.x, t1.* FROM q t0 CROSS JOIN p t1 ON t1.a=t0.y",
        "SELECT t0.x, t1.* FROM q t0 LEFT JOIN s t1 ON t1.u=t0.y",
    };
    SqlKit kit;
    sql_kit_open(&kit);
    for (size_t i = 0; i < COUNT_OF(setup); i++)
        sql_kit_same(&kit, setup[i]);
    for (size_t i = 0; i < COUNT_OF(statements); i++) {
        set_mode(&kit.ctx, LOOPED);
        sql_kit_same(&kit, statements[i]);
        set_mode(&kit.ctx, HASHED);
        sql_kit_same(&kit, statements[i]);
    }
    sql_kit_close(&kit);
}

/* Where the run for all outer rows fails, those who ask get what the subquery as written gives. */
static void
errors_of_rows_that_nobody_asks_for(void **state)
{
    (void)state;
    static const char *const statements[] = {
        "CREATE TABLE big(k INT, v)",
        "INSERT INTO big VALUES(1,9223372036854775807),(1,1),(2,5),(3,6),(3,0.5),(NULL,7)",
        "SELECT id, (SELECT sum(v) FROM big WHERE k=p.id) FROM p WHERE id>1",
        "SELECT id, (SELECT sum(v) FROM big WHERE k=p.id) FROM p",
        "SELECT id FROM p WHERE (SELECT count(*)+1 FROM big WHERE k IS p.a)=1",
        "SELECT id, (SELECT coalesce(max(v),'none') FROM big WHERE k=p.c) FROM p",
        "SELECT id, (SELECT v FROM big WHERE k=p.a) FROM p",
        "SELECT id FROM p WHERE abs(id-5)<3 AND a IN (SELECT k FROM big WHERE v>p.id)",
        "SELECT id FROM p WHERE a NOT IN (SELECT k FROM big WHERE v<>p.id)",
        "SELECT (SELECT count(DISTINCT v) FROM big b WHERE b.k=a.k) FROM big a",
        "SELECT k, (SELECT k+count(*) FROM p WHERE p.a=big.k) FROM big",
        "SELECT id, (SELECT row_number() OVER (ORDER BY v) FROM big WHERE k=p.a) FROM p",
        "SELECT id FROM p WHERE id IN (SELECT count(*) OVER () FROM big WHERE k=p.a)",
        "SELECT id, (SELECT count(*) OVER () FROM big WHERE k=p.a GROUP BY k) FROM p",
        "SELECT id FROM p WHERE EXISTS(SELECT abs(-9223372036854775808) FROM big WHERE k=p.id)",
    };
    SqlKit kit;
    sql_kit_open(&kit);
    for (size_t i = 0; i < COUNT_OF(setup); i++)
        sql_kit_same(&kit, setup[i]);
    for (u32 mode = 0; mode < PLAIN; mode++) { /* Plain scans have other orders. */
        for (size_t i = mode == 0 ? 0 : 2; i < COUNT_OF(statements); i++) {
            set_mode(&kit.ctx, mode);
            sql_kit_same(&kit, statements[i]);
        }
    }
    sql_kit_close(&kit);
}

static u64
number_of(const char *text)
{
    u64 value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (u64)(*text - '0');
    return value;
}

int
main(int argc, char **argv)
{
    /* More statements by hand: join_diff_test COUNT [SEED]. */
    if (argc > 1) statements_wanted = (u32)number_of(argv[1]);
    if (argc > 2) seed = number_of(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_joins_agree),
        cmocka_unit_test(hashed_look_ups_keep_their_order),
        cmocka_unit_test(errors_of_rows_that_nobody_asks_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
