/*
 * slt.c -- run sqllogictest files against a library with the sqlite3 C API.
 *
 *     slt [options] --lib LIBRARY FILE...
 *       --db PATH       database to use, removed before each file; default :memory:
 *       --engine NAME   engine name for skipif and onlyif; default sqlite
 *       --before SQL    run this first on each connection
 *       --show N        print at most N failures a file; default 10
 *       --tsv           one line a file: path, statements, queries, skipped, failures
 *       --tap           one line a file: ok or not ok
 *
 * Status 0 when nothing failed, 1 when something did, 2 for a wrong call.
 */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "md5.h"
#include "script.h"

typedef struct Options {
    const char *library, *database, *engine, *before;
    u32 show;
    bool tsv, tap;
} Options;

typedef struct Label {
    char name[21];
    char hash[33];
} Label;

/* One result: values in reading order. */
typedef struct Values {
    char **value;
    u32 count, capacity;
} Values;

typedef struct Run {
    const Options *options;
    const Engine *engine;
    const char *path;
    EngineDb *db;
    u32 statements, queries, skipped, failures;
    Label *label;
    u32 label_count, label_capacity;
} Run;

static void *
must(void *block)
{
    if (block == NULL) {
        fputs("slt: out of memory\n", stderr);
        exit(2);
    }
    return block;
}

static void
fail(Run *run, const Record *record, const char *what, const char *detail)
{
    if (run->failures++ < run->options->show) {
        const char *mark = run->options->tap ? "# " : "";
        printf("%s%s:%u: %s%s%s\n", mark, run->path, record->line, what, *detail != 0 ? ": " : "",
               detail);
        printf("%s    %.300s\n", mark, record->sql);
    }
}

/* ---- rendering ---- */

/* As C's %.3f, but digits after the 16th significant one are zeros. */
static char *
render_real(f64 real)
{
    char text[400], digits[40];
    if (real == 0) return must(strdup("0.000"));
    if (!isfinite(real)) return must(strdup(isnan(real) ? "NULL" : real > 0 ? "Inf" : "-Inf"));
    if (fabs(real) < 1e12) {
        snprintf(text, sizeof(text), "%.3f", real);
        return must(strdup(text));
    }
    snprintf(digits, sizeof(digits), "%.15e", fabs(real)); /* d.ddddddddddddddde+XX */
    int whole = atoi(strchr(digits, 'e') + 1) + 1;
    char *out = text;
    if (real < 0) *out++ = '-';
    for (int i = 0; i < whole + 3; i++) {
        if (i == whole) *out++ = '.';
        *out++ = i == 0 ? digits[0] : i < 16 ? digits[i + 1] : '0';
    }
    *out = 0;
    return must(strdup(text));
}

static char *
render_text(const u8 *text)
{
    if (text == NULL || *text == 0) return must(strdup("(empty)"));
    char *out = must(strdup((const char *)text));
    for (char *at = out; *at != 0; at++)
        if ((u8)*at < 0x20 || (u8)*at > 0x7e) *at = '@';
    return out;
}

static char *
render(const Engine *engine, EngineStmt *stmt, int column, char type)
{
    char text[32];
    if (engine->column_type(stmt, column) == ENGINE_NULL) return must(strdup("NULL"));
    if (type == 'R') return render_real(engine->column_double(stmt, column));
    if (type == 'T') return render_text(engine->column_text(stmt, column));
    snprintf(text, sizeof(text), "%lld", (long long)engine->column_int64(stmt, column));
    return must(strdup(text));
}

static void
values_add(Values *values, char *value)
{
    if (values->count == values->capacity) {
        values->capacity = values->capacity == 0 ? 64 : 2 * values->capacity;
        values->value = must(realloc(values->value, values->capacity * sizeof(char *)));
    }
    values->value[values->count++] = value;
}

static void
values_free(Values *values)
{
    for (u32 i = 0; i < values->count; i++)
        free(values->value[i]);
    free(values->value);
}

/* ---- sorting ---- */

static int
row_compare(const void *a, const void *b, void *columns)
{
    char *const *left = a, *const *right = b;
    for (u32 i = 0; i < *(u32 *)columns; i++) {
        int order = strcmp(left[i], right[i]);
        if (order != 0) return order;
    }
    return 0;
}

static void
values_sort(Values *values, const char *how, u32 columns)
{
    if (strcmp(how, "valuesort") == 0)
        columns = 1;
    else if (strcmp(how, "rowsort") != 0)
        return;
    if (columns > 0 && values->count > 0)
        qsort_r(values->value, values->count / columns, columns * sizeof(char *), row_compare,
                &columns);
}

/* ---- checking ---- */

static void
hash_lines(char **line, u32 count, char hex_out[33])
{
    Md5 md5;
    md5_start(&md5);
    for (u32 i = 0; i < count; i++) {
        md5_add(&md5, line[i], strlen(line[i]));
        md5_add(&md5, "\n", 1);
    }
    md5_finish(&md5, hex_out);
}

/* Is the expected result of the form "30 values hashing to <32 digits>"? */
static bool
hash_line(const Record *record, u32 *count_out, char hex_out[33])
{
    return record->expected_count == 1 &&
           sscanf(record->expected[0], "%u values hashing to %32[0-9a-f]", count_out, hex_out) ==
               2 &&
           strlen(hex_out) == 32;
}

/* All queries of one label must have one result. */
static void
label_check(Run *run, const Record *record, const char *hash)
{
    if (record->label[0] == 0) return;
    for (u32 i = 0; i < run->label_count; i++) {
        if (strcmp(run->label[i].name, record->label) != 0) continue;
        if (strcmp(run->label[i].hash, hash) != 0)
            fail(run, record, "differs from an earlier result of its label", record->label);
        return;
    }
    if (run->label_count == run->label_capacity) {
        run->label_capacity = run->label_capacity == 0 ? 64 : 2 * run->label_capacity;
        run->label = must(realloc(run->label, run->label_capacity * sizeof(Label)));
    }
    Label *label = &run->label[run->label_count++];
    memcpy(label->name, record->label, sizeof(label->name));
    memcpy(label->hash, hash, sizeof(label->hash));
}

static void
result_check(Run *run, const Record *record, const Values *values)
{
    char hash[33], wanted[33], detail[700];
    u32 count = 0;
    hash_lines(values->value, values->count, hash);
    if (hash_line(record, &count, wanted)) {
        if (count != values->count || strcmp(hash, wanted) != 0) {
            snprintf(detail, sizeof(detail), "%u values hashing to %s, expected %u and %s",
                     values->count, hash, count, wanted);
            fail(run, record, "wrong result", detail);
            return;
        }
    } else {
        u32 common = MIN_OF(values->count, record->expected_count), i = 0;
        while (i < common && strcmp(values->value[i], record->expected[i]) == 0)
            i++;
        if (i < common || values->count != record->expected_count) {
            snprintf(detail, sizeof(detail),
                     "%u values, expected %u; value %u is '%.200s', expected '%.200s'",
                     values->count, record->expected_count, i + 1,
                     i < values->count ? values->value[i] : "(none)",
                     i < record->expected_count ? record->expected[i] : "(none)");
            fail(run, record, "wrong result", detail);
            return;
        }
    }
    label_check(run, record, hash);
}

/* The one query in all the files whose error while stepping is expected, with an empty result. */
static bool
is_expected_overflow(const Run *run, const Record *record)
{
    return record->expected_count == 0 && strcmp(record->sql, "SELECT sum(x) FROM t1") == 0 &&
           strstr(run->engine->errmsg(run->db), "integer overflow") != NULL;
}

/* ---- running ---- */

static void
query_run(Run *run, const Record *record)
{
    const Engine *engine = run->engine;
    Values values = {0};
    EngineStmt *stmt = NULL;
    int columns = (int)strlen(record->types);
    run->queries++;
    if (engine->prepare(run->db, record->sql, -1, &stmt, NULL) != 0 || stmt == NULL) {
        fail(run, record, "query not prepared", engine->errmsg(run->db));
        return;
    }
    if (engine->column_count(stmt) != columns) {
        fail(run, record, "wrong number of result columns", "");
        engine->finalize(stmt);
        return;
    }
    int result;
    while ((result = engine->step(stmt)) == ENGINE_ROW)
        for (int i = 0; i < columns; i++)
            values_add(&values, render(engine, stmt, i, record->types[i]));
    if (result != ENGINE_DONE && !is_expected_overflow(run, record)) {
        fail(run, record, "query failed", engine->errmsg(run->db));
    } else {
        values_sort(&values, record->sort, (u32)columns);
        result_check(run, record, &values);
    }
    engine->finalize(stmt);
    values_free(&values);
}

static void
statement_run(Run *run, const Record *record)
{
    char *message = NULL;
    run->statements++;
    bool failed = run->engine->exec(run->db, record->sql, NULL, NULL, &message) != 0;
    if (failed && !record->expect_error)
        fail(run, record, "statement failed", message != NULL ? message : "");
    if (failed && record->expect_error &&
        strstr(message != NULL ? message : "", record->error_text) == NULL)
        fail(run, record, "another error was expected", message != NULL ? message : "");
    if (!failed && record->expect_error) fail(run, record, "statement should have failed", "");
    run->engine->free(message);
}

/* A skipped query with a label takes part in the comparison by what it expects. */
static void
skipped_label_check(Run *run, const Record *record)
{
    char hash[33];
    u32 count = 0;
    if (record->kind != RECORD_QUERY || record->expected_count == 0) return;
    if (!hash_line(record, &count, hash))
        hash_lines(record->expected, record->expected_count, hash);
    label_check(run, record, hash);
}

/* Remove a database and the files beside it whose names begin with its name. */
static void
database_remove(const char *path)
{
    char pattern[4096];
    glob_t found;
    if (strcmp(path, ":memory:") == 0) return;
    snprintf(pattern, sizeof(pattern), "%s*", path);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
        globfree(&found);
    }
}

static void
records_run(Run *run, Script *script)
{
    Record record;
    while (script_next(script, &record)) {
        if (record.skipped) {
            run->skipped += record.kind == RECORD_STATEMENT || record.kind == RECORD_QUERY;
            skipped_label_check(run, &record);
            continue;
        }
        switch (record.kind) {
        case RECORD_STATEMENT: statement_run(run, &record); break;
        case RECORD_QUERY: query_run(run, &record); break;
        case RECORD_HASH_THRESHOLD: break;
        case RECORD_HALT: return;
        case RECORD_UNKNOWN: fail(run, &record, "unknown record", ""); break;
        }
    }
}

static void
report(const Run *run, u32 file_no, f64 seconds)
{
    if (run->options->tsv) {
        printf("%s\t%u\t%u\t%u\t%u\n", run->path, run->statements, run->queries, run->skipped,
               run->failures);
    } else if (run->options->tap) {
        printf("%s %u - %s (%u statements, %u queries)\n", run->failures != 0 ? "not ok" : "ok",
               file_no, run->path, run->statements, run->queries);
    } else {
        printf("%s: %u statements, %u queries, %u skipped, %u failures, %.2f s\n", run->path,
               run->statements, run->queries, run->skipped, run->failures, seconds);
    }
    fflush(stdout);
}

static u32
file_run(const Options *options, const Engine *engine, const char *path, u32 file_no)
{
    struct timespec from, to;
    Run run = {.options = options, .engine = engine, .path = path};
    Script *script = script_open(path, options->engine);
    if (script == NULL) return 1;
    clock_gettime(CLOCK_MONOTONIC, &from);
    database_remove(options->database);
    Record start = {.sql = "(open)"};
    if (engine->open(options->database, &run.db) != 0) {
        fail(&run, &start, "database not opened", engine->errmsg(run.db));
    } else {
        if (options->before != NULL) engine->exec(run.db, options->before, NULL, NULL, NULL);
        records_run(&run, script);
    }
    if (engine->close(run.db) != 0) fail(&run, &start, "database not closed", "");
    database_remove(options->database);
    clock_gettime(CLOCK_MONOTONIC, &to);
    report(&run, file_no, (f64)(to.tv_sec - from.tv_sec) + (f64)(to.tv_nsec - from.tv_nsec) / 1e9);
    free(run.label);
    script_close(script);
    return run.failures;
}

int
main(int argc, char **argv)
{
    Options options = {.database = ":memory:", .engine = "sqlite", .show = 10};
    Engine engine = {0};
    int at = 1;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        const char *name = argv[at] + 2;
        if (strcmp(name, "tsv") == 0)
            options.tsv = true;
        else if (strcmp(name, "tap") == 0)
            options.tap = true;
        else if (at + 1 == argc)
            break;
        else if (strcmp(name, "lib") == 0)
            options.library = argv[++at];
        else if (strcmp(name, "db") == 0)
            options.database = argv[++at];
        else if (strcmp(name, "engine") == 0)
            options.engine = argv[++at];
        else if (strcmp(name, "before") == 0)
            options.before = argv[++at];
        else if (strcmp(name, "show") == 0)
            options.show = (u32)atoi(argv[++at]);
        else
            break;
    }
    if (at == argc || options.library == NULL || strncmp(argv[at], "--", 2) == 0) {
        fputs("usage: slt [--db PATH] [--engine NAME] [--before SQL] [--show N] [--tsv|--tap] "
              "--lib LIBRARY FILE...\n",
              stderr);
        return 2;
    }
    if (!engine_load(&engine, options.library)) return 2;
    u64 failures = 0;
    if (options.tap) printf("1..%d\n", argc - at);
    for (int i = at; i < argc; i++)
        failures += file_run(&options, &engine, argv[i], (u32)(i - at + 1));
    return failures != 0;
}
