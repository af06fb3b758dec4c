/*
 * vtab.c -- virtual tables through the C API: a transcript of statements, their rows, and the calls
 * that reach the modules.
 *
 * Method: the same program prints the same text on SQLite itself; tests/capi/vtab.expected is what
 * SQLite 3.54 prints.  Three modules: `mem` keeps rows in memory and can be written, with
 * transactions and savepoints; `series` is eponymous and insists on its arguments; `pick` takes IN
 * lists whole and shows what xBestIndex is told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite3.h"

static sqlite3 *db;
static int log_calls;

static void
note(const char *text)
{
    if (log_calls) printf("    [%s]\n", text);
}

/* ---- running statements ---- */

static void
print_value(sqlite3_stmt *stmt, int i)
{
    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_NULL: printf("NULL"); break;
    case SQLITE_TEXT: printf("'%s'", (const char *)sqlite3_column_text(stmt, i)); break;
    case SQLITE_BLOB: printf("blob(%d)", sqlite3_column_bytes(stmt, i)); break;
    default: printf("%s", (const char *)sqlite3_column_text(stmt, i)); break;
    }
}

static void
run(const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    printf("> %s\n", sql);
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (code != SQLITE_OK) {
        printf("  error %d: %s\n", code, sqlite3_errmsg(db));
        return;
    }
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        printf("  ");
        /* Of EXPLAIN QUERY PLAN only the words: numbers of lines are nobody's business. */
        int first = sqlite3_stmt_isexplain(stmt) ? 3 : 0;
        for (int i = first; i < sqlite3_column_count(stmt); i++) {
            if (i > first) printf("|");
            print_value(stmt, i);
        }
        printf("\n");
    }
    if (code != SQLITE_DONE) printf("  error %d: %s\n", code, sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
}

/* ---- mem: rows in memory ---- */

typedef struct MemRow {
    sqlite3_int64 rowid;
    sqlite3_value *cell[3];
    struct MemRow *next;
} MemRow;

typedef struct MemTable {
    sqlite3_vtab base;
    MemRow *first;
    sqlite3_int64 last;
    int refuse; /* Rows with a = 13 are refused. */
} MemTable;

typedef struct MemCursor {
    sqlite3_vtab_cursor base;
    MemRow *at;
    int only; /* One rowid. */
    sqlite3_int64 rowid;
} MemCursor;

static int
mem_connect(sqlite3 *owner, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
            char **err)
{
    (void)aux;
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "fail") == 0) {
            *err = sqlite3_mprintf("told to fail: %s", argv[2]);
            return SQLITE_ERROR;
        }
        if (strcmp(argv[i], "mute") == 0) return SQLITE_ERROR;
    }
    char text[200];
    snprintf(text, sizeof(text), "connect %s.%s argc=%d", argv[1], argv[2], argc);
    note(text);
    int code = SQLITE_OK;
    if (argc < 4 || strcmp(argv[3], "silent") != 0) {
        code = sqlite3_declare_vtab(owner, "CREATE TABLE x(a INTEGER, b TEXT, c HIDDEN)");
    }
    if (code != SQLITE_OK) return code;
    sqlite3_vtab_config(owner, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
    MemTable *table = sqlite3_malloc(sizeof(*table));
    memset(table, 0, sizeof(*table));
    *out = &table->base;
    return SQLITE_OK;
}

static int
mem_create(sqlite3 *owner, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
           char **err)
{
    note("create");
    return mem_connect(owner, aux, argc, argv, out, err);
}

static void
row_free(MemRow *row)
{
    for (int i = 0; i < 3; i++)
        sqlite3_value_free(row->cell[i]);
    sqlite3_free(row);
}

static int
mem_disconnect(sqlite3_vtab *base)
{
    MemTable *table = (MemTable *)base;
    while (table->first != NULL) {
        MemRow *next = table->first->next;
        row_free(table->first);
        table->first = next;
    }
    sqlite3_free(table);
    return SQLITE_OK;
}

static int
mem_destroy(sqlite3_vtab *base)
{
    note("destroy");
    return mem_disconnect(base);
}

static int
mem_best(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    for (int i = 0; i < info->nConstraint; i++) {
        if (!info->aConstraint[i].usable || info->aConstraint[i].iColumn != -1) continue;
        if (info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
        info->aConstraintUsage[i].argvIndex = 1;
        info->aConstraintUsage[i].omit = 1;
        info->idxNum = 1;
        info->estimatedCost = 1;
        info->estimatedRows = 1;
        info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
        return SQLITE_OK;
    }
    info->estimatedCost = 1000;
    return SQLITE_OK;
}

static int
mem_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    MemCursor *cursor = sqlite3_malloc(sizeof(*cursor));
    memset(cursor, 0, sizeof(*cursor));
    *out = &cursor->base;
    return SQLITE_OK;
}

static int
mem_close(sqlite3_vtab_cursor *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

static void
mem_seek(MemCursor *cursor)
{
    while (cursor->at != NULL && cursor->only && cursor->at->rowid != cursor->rowid)
        cursor->at = cursor->at->next;
}

static int
mem_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv)
{
    (void)text;
    MemCursor *cursor = (MemCursor *)base;
    cursor->at = ((MemTable *)base->pVtab)->first;
    cursor->only = number == 1;
    if (argc > 0) cursor->rowid = sqlite3_value_int64(argv[0]);
    mem_seek(cursor);
    return SQLITE_OK;
}

static int
mem_next(sqlite3_vtab_cursor *base)
{
    MemCursor *cursor = (MemCursor *)base;
    cursor->at = cursor->at->next;
    mem_seek(cursor);
    return SQLITE_OK;
}

static int
mem_eof(sqlite3_vtab_cursor *base)
{
    return ((MemCursor *)base)->at == NULL;
}

static int
mem_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int i)
{
    if (sqlite3_vtab_nochange(context)) return SQLITE_OK;
    sqlite3_result_value(context, ((MemCursor *)base)->at->cell[i]);
    return SQLITE_OK;
}

static int
mem_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = ((MemCursor *)base)->at->rowid;
    return SQLITE_OK;
}

static MemRow **
mem_find(MemTable *table, sqlite3_int64 rowid)
{
    MemRow **link = &table->first;
    while (*link != NULL && (*link)->rowid < rowid)
        link = &(*link)->next;
    return link;
}

static int
mem_update(sqlite3_vtab *base, int argc, sqlite3_value **argv, sqlite3_int64 *rowid_out)
{
    MemTable *table = (MemTable *)base;
    char text[200];
    snprintf(text, sizeof(text), "update argc=%d conflict=%d", argc, sqlite3_vtab_on_conflict(db));
    note(text);
    MemRow *old = NULL;
    if (argc > 1 && sqlite3_value_int(argv[2]) == 13 && !sqlite3_value_nochange(argv[2])) {
        base->zErrMsg = sqlite3_mprintf("13 is refused");
        return SQLITE_CONSTRAINT;
    }
    if (sqlite3_value_type(argv[0]) != SQLITE_NULL) {
        MemRow **link = mem_find(table, sqlite3_value_int64(argv[0]));
        old = *link;
        if (old == NULL) return SQLITE_ERROR;
        *link = old->next;
    }
    if (argc == 1) {
        row_free(old);
        return SQLITE_OK;
    }
    MemRow *row = sqlite3_malloc(sizeof(*row));
    memset(row, 0, sizeof(*row));
    row->rowid = sqlite3_value_type(argv[1]) == SQLITE_NULL ? table->last + 1
                                                            : sqlite3_value_int64(argv[1]);
    if (row->rowid > table->last) table->last = row->rowid;
    for (int i = 0; i < 3; i++) {
        if (old != NULL && sqlite3_value_nochange(argv[i + 2])) {
            row->cell[i] = sqlite3_value_dup(old->cell[i]);
        } else {
            row->cell[i] = sqlite3_value_dup(argv[i + 2]);
        }
    }
    if (old != NULL) row_free(old);
    MemRow **link = mem_find(table, row->rowid);
    row->next = *link;
    *link = row;
    *rowid_out = row->rowid;
    return SQLITE_OK;
}

#define STEP(name)                            \
    static int mem_##name(sqlite3_vtab *base) \
    {                                         \
        (void)base;                           \
        note(#name);                          \
        return SQLITE_OK;                     \
    }
STEP(begin)
STEP(sync)
STEP(commit)
STEP(rollback)

#define LEVEL(name)                                       \
    static int mem_##name(sqlite3_vtab *base, int level)  \
    {                                                     \
        (void)base;                                       \
        char text[40];                                    \
        snprintf(text, sizeof(text), #name " %d", level); \
        note(text);                                       \
        return SQLITE_OK;                                 \
    }
LEVEL(savepoint)
LEVEL(release)
LEVEL(rollback_to)

static int
mem_rename(sqlite3_vtab *base, const char *name)
{
    (void)base;
    char text[100];
    snprintf(text, sizeof(text), "rename %s", name);
    note(text);
    return SQLITE_OK;
}

static void
twice(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    sqlite3_result_int64(context, 2 * sqlite3_value_int64(argv[0]));
}

static void
says_yes(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_int(context, 1);
}

static int
mem_find_function(sqlite3_vtab *base, int argc, const char *name,
                  void (**function)(sqlite3_context *, int, sqlite3_value **), void **app)
{
    (void)base;
    *app = NULL;
    if (argc == 1 && sqlite3_stricmp(name, "abs") == 0) {
        *function = twice;
        return 1;
    }
    if (argc == 2 && sqlite3_stricmp(name, "match") == 0) {
        *function = says_yes;
        return 1;
    }
    return 0;
}

static int
mem_shadow(const char *suffix)
{
    return sqlite3_stricmp(suffix, "data") == 0;
}

static const sqlite3_module mem_module = {
    .iVersion = 3,
    .xCreate = mem_create,
    .xConnect = mem_connect,
    .xBestIndex = mem_best,
    .xDisconnect = mem_disconnect,
    .xDestroy = mem_destroy,
    .xOpen = mem_open,
    .xClose = mem_close,
    .xFilter = mem_filter,
    .xNext = mem_next,
    .xEof = mem_eof,
    .xColumn = mem_column,
    .xRowid = mem_rowid,
    .xUpdate = mem_update,
    .xBegin = mem_begin,
    .xSync = mem_sync,
    .xCommit = mem_commit,
    .xRollback = mem_rollback,
    .xFindFunction = mem_find_function,
    .xRename = mem_rename,
    .xSavepoint = mem_savepoint,
    .xRelease = mem_release,
    .xRollbackTo = mem_rollback_to,
    .xShadowName = mem_shadow,
};

/* ---- series: eponymous, start and stop needed ---- */

typedef struct SeriesCursor {
    sqlite3_vtab_cursor base;
    sqlite3_int64 start, stop, value;
} SeriesCursor;

static int
series_connect(sqlite3 *owner, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
               char **err)
{
    (void)aux;
    (void)argc;
    (void)argv;
    (void)err;
    int code = sqlite3_declare_vtab(owner,
                                    "CREATE TABLE x(value, start INT HIDDEN, stop INT HIDDEN)");
    if (code != SQLITE_OK) return code;
    *out = sqlite3_malloc(sizeof(sqlite3_vtab));
    memset(*out, 0, sizeof(sqlite3_vtab));
    return SQLITE_OK;
}

static int
series_disconnect(sqlite3_vtab *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

static int
series_best(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    int found[3] = {-1, -1, -1};
    for (int i = 0; i < info->nConstraint; i++) {
        int column = info->aConstraint[i].iColumn;
        if (info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ || column < 1) continue;
        if (!info->aConstraint[i].usable) return SQLITE_CONSTRAINT;
        found[column] = i;
    }
    if (found[1] < 0 || found[2] < 0) return SQLITE_CONSTRAINT;
    for (int c = 1; c <= 2; c++) {
        info->aConstraintUsage[found[c]].argvIndex = c;
        info->aConstraintUsage[found[c]].omit = 1;
    }
    if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn == 0 && !info->aOrderBy[0].desc)
        info->orderByConsumed = 1;
    info->estimatedCost = 10;
    info->estimatedRows = 10;
    return SQLITE_OK;
}

static int
series_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    *out = sqlite3_malloc(sizeof(SeriesCursor));
    memset(*out, 0, sizeof(SeriesCursor));
    return SQLITE_OK;
}

static int
series_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
              sqlite3_value **argv)
{
    (void)number;
    (void)text;
    (void)argc;
    SeriesCursor *cursor = (SeriesCursor *)base;
    cursor->start = cursor->value = sqlite3_value_int64(argv[0]);
    cursor->stop = sqlite3_value_int64(argv[1]);
    return SQLITE_OK;
}

static int
series_next(sqlite3_vtab_cursor *base)
{
    note("next");
    ((SeriesCursor *)base)->value++;
    return SQLITE_OK;
}

static int
series_eof(sqlite3_vtab_cursor *base)
{
    return ((SeriesCursor *)base)->value > ((SeriesCursor *)base)->stop;
}

static int
series_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int i)
{
    SeriesCursor *cursor = (SeriesCursor *)base;
    sqlite3_result_int64(context, i == 0 ? cursor->value : i == 1 ? cursor->start : cursor->stop);
    return SQLITE_OK;
}

static int
series_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = ((SeriesCursor *)base)->value;
    return SQLITE_OK;
}

static const sqlite3_module series_module = {
    .xConnect = series_connect,
    .xBestIndex = series_best,
    .xDisconnect = series_disconnect,
    .xDestroy = series_disconnect,
    .xOpen = series_open,
    .xClose = mem_close,
    .xFilter = series_filter,
    .xNext = series_next,
    .xEof = series_eof,
    .xColumn = series_column,
    .xRowid = series_rowid,
};

/* ---- pick: says what it is told ---- */

typedef struct PickCursor {
    sqlite3_vtab_cursor base;
    int at;
} PickCursor;

static int pick_whole;

static int
pick_connect(sqlite3 *owner, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
             char **err)
{
    (void)aux;
    (void)argc;
    (void)argv;
    (void)err;
    int code = sqlite3_declare_vtab(owner, "CREATE TABLE x(k TEXT COLLATE NOCASE, v, w)");
    if (code != SQLITE_OK) return code;
    *out = sqlite3_malloc(sizeof(sqlite3_vtab));
    memset(*out, 0, sizeof(sqlite3_vtab));
    return SQLITE_OK;
}

static int
pick_best(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    int argc = 0;
    if (log_calls) {
        for (int i = 0; i < info->nConstraint; i++) {
            sqlite3_value *value = NULL;
            int known = sqlite3_vtab_rhs_value(info, i, &value);
            printf("    [col %d op %d usable %d in %d %s rhs %s]\n", info->aConstraint[i].iColumn,
                   info->aConstraint[i].op, info->aConstraint[i].usable,
                   sqlite3_vtab_in(info, i, -1), sqlite3_vtab_collation(info, i),
                   known == SQLITE_OK ? (const char *)sqlite3_value_text(value) : "?");
        }
        for (int i = 0; i < info->nOrderBy; i++)
            printf("    [order %d desc %d]\n", info->aOrderBy[i].iColumn, info->aOrderBy[i].desc);
        printf("    [distinct %d used %d]\n", sqlite3_vtab_distinct(info), (int)info->colUsed);
    }
    for (int i = 0; i < info->nConstraint; i++) {
        if (!info->aConstraint[i].usable || info->aConstraint[i].iColumn != 1) continue;
        if (info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
        info->aConstraintUsage[i].argvIndex = ++argc;
        info->idxStr = sqlite3_mprintf("eq");
        info->needToFreeIdxStr = 1;
        info->idxNum = 7;
        if (pick_whole) sqlite3_vtab_in(info, i, 1);
        break;
    }
    info->estimatedCost = 100;
    info->estimatedRows = 10;
    return SQLITE_OK;
}

static int
pick_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    *out = sqlite3_malloc(sizeof(PickCursor));
    memset(*out, 0, sizeof(PickCursor));
    return SQLITE_OK;
}

static int
pick_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv)
{
    ((PickCursor *)base)->at = 0;
    if (!log_calls) return SQLITE_OK;
    printf("    [filter %d %s", number, text == NULL ? "-" : text);
    for (int i = 0; i < argc; i++) {
        sqlite3_value *value = NULL;
        int code = sqlite3_vtab_in_first(argv[i], &value);
        if (code != SQLITE_OK && code != SQLITE_DONE) {
            printf(" %s", (const char *)sqlite3_value_text(argv[i]));
            continue;
        }
        printf(" list");
        for (; code == SQLITE_OK; code = sqlite3_vtab_in_next(argv[i], &value))
            printf(" %s", (const char *)sqlite3_value_text(value));
    }
    printf("]\n");
    return SQLITE_OK;
}

static int
pick_next(sqlite3_vtab_cursor *base)
{
    ((PickCursor *)base)->at++;
    return SQLITE_OK;
}

static int
pick_eof(sqlite3_vtab_cursor *base)
{
    return ((PickCursor *)base)->at >= 4;
}

static int
pick_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int i)
{
    static const char *const keys[] = {"Ann", "bob", "ann", "Cid"};
    int at = ((PickCursor *)base)->at;
    if (i == 0) sqlite3_result_text(context, keys[at], -1, SQLITE_STATIC);
    if (i == 1) sqlite3_result_int(context, at);
    return SQLITE_OK;
}

static int
pick_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = ((PickCursor *)base)->at;
    return SQLITE_OK;
}

static const sqlite3_module pick_module = {
    .xCreate = pick_connect,
    .xConnect = pick_connect,
    .xBestIndex = pick_best,
    .xDisconnect = series_disconnect,
    .xDestroy = series_disconnect,
    .xOpen = pick_open,
    .xClose = mem_close,
    .xFilter = pick_filter,
    .xNext = pick_next,
    .xEof = pick_eof,
    .xColumn = pick_column,
    .xRowid = pick_rowid,
};

static int modules_gone;

static void
module_gone(void *arg)
{
    (void)arg;
    modules_gone++;
}

/* ---- the transcript ---- */

static void
reading(void)
{
    printf("== series\n");
    run("SELECT value FROM series(1,3)");
    run("SELECT * FROM series WHERE start=2 AND stop=4");
    run("SELECT value, start, stop, rowid FROM series(5,6)");
    run("SELECT value FROM series");
    run("SELECT value FROM series(1)");
    run("SELECT value FROM series(1,2,3)");
    run("SELECT a.value, b.value FROM series(1,3) a, series(a.value,3) b");
    run("SELECT b.value, a.value FROM series(a.value,3) b, series(2,3) a");
    run("SELECT x, value FROM (SELECT 1 AS x UNION ALL SELECT 5) LEFT JOIN series(x,2)");
    run("SELECT sum(value), count(*) FROM series(1,100)");
    run("SELECT value FROM series(1,9) ORDER BY value DESC LIMIT 2");
    run("SELECT value FROM series(1,9) WHERE value%2=0 ORDER BY value");
    run("EXPLAIN QUERY PLAN SELECT value FROM series(1,9) ORDER BY value");
    run("EXPLAIN QUERY PLAN SELECT value FROM series(1,9) ORDER BY value DESC");
    run("SELECT value FROM series(1,4) WHERE value IN (SELECT value+1 FROM series(1,2))");
    run("SELECT (SELECT max(value) FROM series(1,x)) FROM (SELECT 3 x UNION ALL SELECT 4)");
    run("INSERT INTO series VALUES(1)");
    run("CREATE VIRTUAL TABLE s USING series");
    run("SELECT value FROM main.series(1,1)");
    run("PRAGMA table_xinfo(series)");
    log_calls = 1;
    run("SELECT value FROM series(1,9) LIMIT 2");
    run("SELECT EXISTS(SELECT 1 FROM series(1,9))");
    log_calls = 0;
}

static void
writing(void)
{
    printf("== mem\n");
    run("CREATE VIRTUAL TABLE t USING mem(one, two three , \"four\")");
    run("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema");
    run("INSERT INTO t VALUES(1,'x')");
    run("INSERT INTO t(rowid,a,b,c) VALUES(10,2,'y','hidden'),(20,3,'z',NULL)");
    run("SELECT changes(), last_insert_rowid()");
    run("SELECT rowid, *, c FROM t");
    run("SELECT rowid FROM t WHERE rowid=10");
    run("SELECT a, abs(a), abs(a+0) FROM t");
    run("SELECT a FROM t WHERE t.b MATCH 'anything'");
    run("UPDATE t SET b=b||'!' WHERE a>1");
    run("UPDATE t SET rowid=11, a=a*10 WHERE rowid=10");
    run("SELECT rowid, *, c FROM t");
    run("DELETE FROM t WHERE rowid=20");
    run("SELECT rowid, a FROM t");
    run("INSERT INTO t SELECT value, 'v'||value FROM series(5,7)");
    run("INSERT INTO t(a) SELECT a+100 FROM t WHERE a<6");
    run("SELECT rowid, a, b FROM t ORDER BY a DESC");
    run("INSERT INTO t VALUES(1,2,3)");
    run("INSERT INTO t(a,b) VALUES(1,2) ON CONFLICT DO NOTHING");
    run("INSERT INTO t(a,b) VALUES(77,'r') RETURNING a, b");
    run("UPDATE t SET a=1 RETURNING a");
    run("DELETE FROM t RETURNING a");
    run("INSERT INTO t VALUES(13,'no')");
    run("INSERT OR IGNORE INTO t VALUES(13,'no')");
    run("INSERT INTO t VALUES(14,'yes'),(13,'no')");
    run("INSERT OR FAIL INTO t VALUES(15,'yes'),(13,'no')");
    run("SELECT count(*), max(a), min(a) FROM t");
    log_calls = 1;
    run("UPDATE t SET b='q' WHERE a=14");
    run("BEGIN");
    run("INSERT INTO t VALUES(50,'a')");
    run("SAVEPOINT one");
    run("INSERT INTO t VALUES(51,'b')");
    run("ROLLBACK TO one");
    run("RELEASE one");
    run("COMMIT");
    run("BEGIN");
    run("INSERT OR REPLACE INTO t VALUES(52,'a')");
    run("ROLLBACK");
    run("SELECT count(*) FROM t");
    run("ALTER TABLE t RENAME TO u");
    log_calls = 0;
    run("SELECT name, sql FROM sqlite_schema");
    run("ALTER TABLE u ADD COLUMN z");
    run("ALTER TABLE u DROP COLUMN a");
    run("ALTER TABLE u RENAME COLUMN a TO aa");
    run("CREATE INDEX i ON u(a)");
    run("CREATE TRIGGER tr AFTER INSERT ON u BEGIN SELECT 1; END");
    run("CREATE TABLE src(n)");
    run("CREATE TRIGGER tr AFTER INSERT ON src BEGIN INSERT INTO u VALUES(new.n,'t'); END");
    run("INSERT INTO src VALUES(4),(5)");
    run("SELECT a, b FROM u");
    run("CREATE VIEW w AS SELECT a*2 AS d FROM u");
    run("SELECT * FROM w");
    run("PRAGMA table_info(u)");
    run("PRAGMA table_xinfo(u)");
    run("CREATE TABLE u_data(x)");
    run("CREATE TABLE u_other(x)");
    run("SELECT name, type FROM pragma_table_list WHERE schema='main' ORDER BY name");
    run("DROP TRIGGER tr");
    run("DROP VIEW w");
    log_calls = 1;
    run("DROP TABLE u");
    log_calls = 0;
    run("SELECT name FROM sqlite_schema");
    run("SELECT * FROM u");
}

static void
failing(void)
{
    printf("== errors\n");
    run("CREATE VIRTUAL TABLE e USING nothing(1)");
    run("CREATE VIRTUAL TABLE e USING mem(fail)");
    run("CREATE VIRTUAL TABLE e USING mem(mute)");
    run("CREATE VIRTUAL TABLE e USING mem(silent)");
    run("SELECT name FROM sqlite_schema");
    run("CREATE VIRTUAL TABLE IF NOT EXISTS e USING mem");
    run("CREATE VIRTUAL TABLE e USING mem");
    run("CREATE VIRTUAL TABLE IF NOT EXISTS e USING mem");
    run("CREATE TABLE e(x)");
    run("SELECT * FROM e INDEXED BY foo");
    run("SELECT nothere FROM e");
    run("SELECT * FROM e('h')");
    run("INSERT INTO e(c,a) VALUES('h',1)");
    run("SELECT a, c FROM e('h')");
    run("SELECT a, c FROM e('g')");
    run("SELECT * FROM e(1,2)");
    run("SELECT * FROM src(1)");
    run("DROP TABLE IF EXISTS e");
    run("DROP TABLE IF EXISTS e");
    printf("declare outside: %d\n", sqlite3_declare_vtab(db, "CREATE TABLE x(a)"));
    printf("config outside: %d\n", sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS));
}

/* Statements that must not see virtual tables; CREATE is no use of one. */
static void
without(const char *sql)
{
    sqlite3_stmt *stmt;
    int code = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_NO_VTAB, &stmt, NULL);
    printf("without: %s: %d %s\n", sql, code, sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
}

static void
asking(void)
{
    printf("== pick\n");
    run("CREATE VIRTUAL TABLE p USING pick");
    log_calls = 1;
    run("SELECT v FROM p WHERE k='ANN'");
    run("SELECT v FROM p WHERE v=2");
    pick_whole = 1;
    run("SELECT v FROM p WHERE v IN (3,1,1)");
    run("SELECT v FROM p WHERE v IN (SELECT 2 UNION ALL SELECT 0)");
    pick_whole = 0;
    run("SELECT k FROM p ORDER BY v DESC, k");
    run("SELECT DISTINCT w FROM p");
    run("SELECT w, count(*) FROM p GROUP BY w");
    run("SELECT v FROM p WHERE v IS 2 AND rowid>=1");
    run("SELECT k FROM p LIMIT 2 OFFSET 1");
    log_calls = 0;
    run("SELECT v FROM p WHERE v IN (3,1,1,NULL)");
    run("SELECT v FROM p WHERE k LIKE 'a%' AND v>1");
    run("SELECT v FROM p WHERE k GLOB 'A*' AND v IS NOT NULL AND w IS NULL");
    run("SELECT v FROM p WHERE v<>2 AND v BETWEEN 1 AND 3");
    run("SELECT p.v FROM p, src WHERE p.v=src.n");
    run("EXPLAIN QUERY PLAN SELECT v FROM p WHERE v=2");
    run("SELECT a.v, b.v FROM p a JOIN p b ON a.v=b.v+1 ORDER BY 1");
    run("SELECT a.v, b.v FROM p a LEFT JOIN p b ON a.v=b.v+2 ORDER BY 1");
    run("SELECT a.v, b.k FROM p b RIGHT JOIN p a ON a.v=b.v+2 ORDER BY 1");
    run("SELECT k FROM p WHERE v=1 OR v=3");
    run("SELECT count(DISTINCT k) FROM p");
    run("UPDATE p SET v=1");
    run("DELETE FROM p");
    without("SELECT v FROM p");
    without("DELETE FROM p");
    without("SELECT value FROM series(1,1)");
    without("SELECT name FROM sqlite_schema");
    without("CREATE VIRTUAL TABLE another USING pick");
    run("SELECT v FROM p WHERE v=2");
    run("DROP TABLE p");
}

int
main(void)
{
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 1;
    sqlite3_create_module_v2(db, "mem", &mem_module, "mem", module_gone);
    sqlite3_create_module_v2(db, "series", &series_module, "series", module_gone);
    sqlite3_create_module(db, "pick", &pick_module, NULL);
    reading();
    writing();
    failing();
    asking();
    const char *keep[] = {"series", NULL};
    printf("drop modules: %d\n", sqlite3_drop_modules(db, keep));
    run("CREATE VIRTUAL TABLE z USING mem");
    run("SELECT value FROM series(1,1)");
    printf("replace: %d\n",
           sqlite3_create_module_v2(db, "series", &mem_module, "second", module_gone));
    run("SELECT value FROM series(1,1)");
    printf("close: %d\n", sqlite3_close(db));
    printf("modules gone: %d\n", modules_gone);
    return 0;
}
