/*
 * habit.c -- T=habit: what programs with an embedded database do all day.
 *
 * One connection on a file of about 45 MB (with 100,000 rows): inserts in autocommit and in one
 * transaction, rows fetched by their ids in four ways, random reads, prepare again against reset,
 * rows read out one by one and as columns, short lives.
 */
#include <stdlib.h>
#include <string.h>

#include "groups.h"
#include "single.h"

#define ROWS_MAX  100000
#define LONG_ROWS 2000
#define IDS_MAX   1000

/* Rows of table m. */
static int64_t
rows_of(const Run *run)
{
    return run->rows < ROWS_MAX ? run->rows : ROWS_MAX;
}

static void
fill(Run *run)
{
    const Engine *e = run->db.engine;
    static char text[4096];
    memset(text, 'x', sizeof(text));
    db_exec(&run->db, "CREATE TABLE m(id INTEGER PRIMARY KEY, a INT, name TEXT, pad TEXT);"
                      "CREATE TABLE l(id INTEGER PRIMARY KEY, long TEXT);"
                      "CREATE TABLE i(id INTEGER PRIMARY KEY, a INT, b TEXT); BEGIN");
    sqlite3_stmt *stmt = db_prepare(&run->db,
                                    "INSERT INTO m VALUES(?1, ?2, printf('%064d', ?2), ?3)");
    for (int64_t i = 1; i <= rows_of(run); i++) {
        e->bind_int64(stmt, 1, i);
        e->bind_int64(stmt, 2, (int64_t)(random_next(&run->state) % 1000000));
        e->bind_text(stmt, 3, text, 350, NULL);
        db_run(&run->db, stmt);
    }
    e->finalize(stmt);
    stmt = db_prepare(&run->db, "INSERT INTO l VALUES(?,?)");
    for (int64_t i = 1; i <= LONG_ROWS; i++) {
        e->bind_int64(stmt, 1, i);
        e->bind_text(stmt, 2, text, sizeof(text), NULL);
        db_run(&run->db, stmt);
    }
    e->finalize(stmt);
    db_exec(&run->db, "COMMIT");
}

/* ---- inserts ---- */

static int64_t
insert_rows(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    for (int64_t i = 0; i < times; i++) {
        run->db.engine->bind_int64(stmt, 1, (int64_t)(random_next(&run->state) % 1000));
        db_run(&run->db, stmt);
    }
    return times;
}

static int64_t
insert_durable(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    db_exec(&run->db, "PRAGMA synchronous=FULL");
    int64_t done = insert_rows(run, stmt, times);
    db_exec(&run->db, "PRAGMA synchronous=NORMAL");
    return done;
}

/* ---- rows by id ---- */

/* How many ids an operation of the workload asks for: the number in its name. */
static int
ids_of(const Run *run)
{
    return atoi(strpbrk(run->work->name, "0123456789"));
}

static int64_t
sum_rows(Run *run, sqlite3_stmt *stmt)
{
    const Engine *e = run->db.engine;
    int64_t sum = 0;
    int code = e->step(stmt);
    for (; code == CODE_ROW; code = e->step(stmt))
        sum += e->column_int64(stmt, 0) + e->column_bytes(stmt, 1);
    db_must(&run->db, code, "fetch");
    e->reset(stmt);
    return sum;
}

static int64_t
next_id(Run *run)
{
    return (int64_t)(random_next(&run->state) % (uint64_t)rows_of(run)) + 1;
}

/* Distinct ids: a step through all from a random start. */
static void
next_ids(Run *run, int64_t *ids, int count)
{
    int64_t id = next_id(run);
    for (int i = 0; i < count; i++)
        ids[i] = (id + (int64_t)i * 7919) % rows_of(run) + 1;
}

static int64_t
fetch_loop(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    int64_t ids[IDS_MAX], sum = 0;
    int count = ids_of(run);
    for (int64_t i = 0; i < times; i++) {
        next_ids(run, ids, count);
        for (int at = 0; at < count; at++) {
            run->db.engine->bind_int64(stmt, 1, ids[at]);
            sum += sum_rows(run, stmt);
        }
    }
    return sum;
}

static size_t
write_ids(char *out, size_t size, const int64_t *ids, int count)
{
    size_t bytes = 0;
    for (int at = 0; at < count; at++)
        bytes += (size_t)snprintf(out + bytes, size - bytes, "%s%lld", at == 0 ? "" : ",",
                                  (long long)ids[at]);
    return bytes;
}

static int64_t
fetch_in_list(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    char sql[16384];
    int64_t ids[IDS_MAX], sum = 0;
    int count = ids_of(run);
    (void)stmt;
    for (int64_t i = 0; i < times; i++) {
        size_t bytes = (size_t)snprintf(sql, sizeof(sql), "SELECT a, name FROM m WHERE id IN (");
        next_ids(run, ids, count);
        bytes += write_ids(sql + bytes, sizeof(sql) - bytes, ids, count);
        snprintf(sql + bytes, sizeof(sql) - bytes, ")");
        sqlite3_stmt *list = db_prepare(&run->db, sql);
        sum += sum_rows(run, list);
        run->db.engine->finalize(list);
    }
    return sum;
}

static int64_t
fetch_json(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    char json[16384];
    int64_t ids[IDS_MAX], sum = 0;
    int count = ids_of(run);
    for (int64_t i = 0; i < times; i++) {
        next_ids(run, ids, count);
        json[0] = '[';
        size_t bytes = 1 + write_ids(json + 1, sizeof(json) - 1, ids, count);
        json[bytes++] = ']';
        run->db.engine->bind_text(stmt, 1, json, (int)bytes, NULL);
        sum += sum_rows(run, stmt);
    }
    return sum;
}

/* By a bound array where the engine has one (Weft); SQLite as it is built has not: its json_each.
 */
static int64_t
fetch_array(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    int64_t ids[IDS_MAX], sum = 0;
    int count = ids_of(run);
    const Engine *e = run->db.engine;
    (void)stmt;
    bool has_array = e->carray_bind != NULL;
    sqlite3_stmt *array = db_prepare(
        &run->db, has_array
                      ? "SELECT a, name FROM m WHERE id IN (SELECT value FROM carray(?1))"
                      : "SELECT a, name FROM m WHERE id IN (SELECT value FROM json_each(?1))");
    if (!has_array) {
        sum = fetch_json(run, array, times);
    } else {
        for (int64_t i = 0; i < times; i++) {
            next_ids(run, ids, count);
            db_must(&run->db, e->carray_bind(array, 1, ids, count, 1, NULL), "carray_bind");
            sum += sum_rows(run, array);
        }
    }
    e->finalize(array);
    return sum;
}

/* ---- reading ---- */

static int64_t
random_reads(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        run->db.engine->bind_int64(stmt, 1, next_id(run));
        sum += sum_rows(run, stmt);
    }
    return sum;
}

static int64_t
prepare_each(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    int64_t sum = 0;
    (void)stmt;
    for (int64_t i = 0; i < times; i++) {
        sqlite3_stmt *again = db_prepare(&run->db, "SELECT a, name FROM m WHERE id=?");
        run->db.engine->bind_int64(again, 1, next_id(run));
        sum += sum_rows(run, again);
        run->db.engine->finalize(again);
    }
    return sum;
}

static int64_t
read_texts(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    const Engine *e = run->db.engine;
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        int code = e->step(stmt);
        for (; code == CODE_ROW; code = e->step(stmt)) {
            const unsigned char *text = e->column_text(stmt, 0);
            sum += e->column_bytes(stmt, 0) + text[0];
        }
        db_must(&run->db, code, "read");
        e->reset(stmt);
    }
    return sum;
}

/* ---- the same in whole columns, where the engine has them; else row by row ---- */

#define BATCH_ROWS 2048

/* Added to the sum as the row-wise readers do it: read_texts() and all_rows(). */
static int64_t
sum_with_column(int64_t sum, const struct ArrowArray *column, bool is_text)
{
    const int64_t *values = column->buffers[1]; /* Integers, or where the texts begin. */
    const unsigned char *text = is_text ? column->buffers[2] : NULL;
    for (int64_t i = 0; i < column->length; i++) {
        if (is_text)
            sum += values[i + 1] - values[i] + text[values[i]];
        else
            sum = (int64_t)((uint64_t)sum * 31 + (uint64_t)values[i]);
    }
    return sum;
}

static int64_t
read_columns(Run *run, const char *sql, bool is_text, int64_t times)
{
    const Engine *e = run->db.engine;
    weft_db *db;
    weft_stmt *stmt;
    struct ArrowArray batch;
    int64_t sum = 0;
    db_must(&run->db, e->native_open(run->path, NULL, &db), "weft_open");
    db_must(&run->db, e->native_prepare(db, sql, -1, &stmt, NULL), "weft_prepare");
    for (int64_t i = 0; i < times; i++) {
        int code = e->native_fetch(stmt, BATCH_ROWS, &batch);
        for (; code == CODE_ROW; code = e->native_fetch(stmt, BATCH_ROWS, &batch)) {
            sum = sum_with_column(sum, batch.children[0], is_text);
            batch.release(&batch);
        }
        db_must(&run->db, code, "weft_fetch");
    }
    e->native_finalize(stmt);
    e->native_close(db);
    return sum;
}

static int64_t
columns_ints(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    if (run->db.engine->native_fetch == NULL) return all_rows(run, stmt, times);
    return read_columns(run, run->work->sql, false, times);
}

static int64_t
columns_texts(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    if (run->db.engine->native_fetch == NULL) return read_texts(run, stmt, times);
    return read_columns(run, run->work->sql, true, times);
}

/* ---- short lives ---- */

static int64_t
life_of(Run *run, const char *path, bool create, int64_t times)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        Db db = {.engine = run->db.engine};
        db_must(&db, db.engine->open_v2(path, &db.handle, OPEN_FLAGS, NULL), "open");
        if (create) db_exec(&db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
        sum += db_int(&db, "SELECT a FROM t");
        db_close(&db);
    }
    return sum;
}

static int64_t
memory_life(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    (void)stmt;
    return life_of(run, ":memory:", true, times);
}

static int64_t
file_life(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    char path[560];
    (void)stmt;
    snprintf(path, sizeof(path), "%s-small", run->path);
    db_remove(path);
    life_of(run, path, true, 1);
    return life_of(run, path, false, times);
}

#define INSERT  "INSERT INTO i(a, b) VALUES(?, 'thirty-two bytes of text, or so')"
#define BY_ID   "SELECT a, name FROM m WHERE id=?"
#define BY_JSON "SELECT a, name FROM m WHERE id IN (SELECT value FROM json_each(?1))"
#define FETCH(n, times, goal)                                                      \
    {"habit.fetch_" #n "_loop", BY_ID, times, fetch_loop, false, 1.0},             \
        {"habit.fetch_" #n "_in_list", NULL, times, fetch_in_list, false, 1.0},    \
        {"habit.fetch_" #n "_json_each", BY_JSON, times, fetch_json, false, goal}, \
    {                                                                              \
        "habit.fetch_" #n "_array", NULL, times, fetch_array, false, goal          \
    }

static const Workload works[] = {
    {"habit.insert_normal", INSERT, 10000, insert_rows, false, 3.0},
    {"habit.insert_full", INSERT, 1000, insert_durable, false, 1.1},
    {"habit.insert_one_txn", INSERT, 10000, insert_rows, true, 1.0},
    FETCH(1, 5000, 1.0),
    FETCH(10, 1000, 1.0),
    FETCH(50, 300, 1.0),
    FETCH(200, 100, 1.0),
    FETCH(1000, 30, 3.0),
    {"habit.random_reads", BY_ID, 20000, random_reads, false, 1.0},
    {"habit.prepare_each_time", NULL, 20000, prepare_each, false, 1.0},
    {"habit.read_ints", "SELECT a FROM m", 3, all_rows, false, 1.0},
    {"habit.read_text_64", "SELECT name FROM m", 3, read_texts, false, 1.0},
    {"habit.read_text_4096", "SELECT long FROM l", 10, read_texts, false, 1.0},
    {"habit.columns_ints", "SELECT a FROM m", 3, columns_ints, false, 1.0},
    {"habit.columns_text_64", "SELECT name FROM m", 3, columns_texts, false, 1.0},
    {"habit.columns_text_4096", "SELECT long FROM l", 10, columns_texts, false, 1.0},
    {"habit.memory_life", NULL, 500, memory_life, false, 1.0},
    {"habit.file_life", NULL, 200, file_life, false, 1.0},
};

void
habit_group(Bench *bench)
{
    Run run[2];
    single_open(bench, run, "habit", fill);
    single_run(bench, run, works, sizeof(works) / sizeof(works[0]));
    single_close(bench, run);
}
