/*
 * command_dump.c -- the database as a text of SQL that makes it again.
 *
 * Order: tables with their rows, the counters of AUTOINCREMENT, then indexes, triggers and views,
 * so that nothing fires or waits for something later.  The names are read first and the rows in
 * further queries, all inside one read transaction, so the dump is of one moment.
 */
#include <string.h>

#include "shell/shell.h"

typedef struct DumpTable {
    struct DumpTable *next;
    const char *name, *sql;
} DumpTable;

typedef struct Dump {
    Shell *shell;
    Arena arena;
    DumpTable *first, **last;
    const char *table,
        *columns; /* Being dumped; the columns are NULL unless they are to be named. */
    bool data_only, newlines, no_system, rowids;
    bool counts; /* A table may have AUTOINCREMENT. */
    bool failed;
} Dump;

static bool
table_found(void *arg, u32 count, const LinkValue *values)
{
    Dump *dump = arg;
    (void)count;
    DumpTable *table = ARENA_NEW(&dump->arena, DumpTable);
    if (table != NULL) {
        table->name = arena_strndup(&dump->arena, values[0].text.p, values[0].text.bytes);
        table->sql = arena_strndup(&dump->arena, values[1].text.p, values[1].text.bytes);
    }
    if (table == NULL || table->name == NULL || table->sql == NULL) {
        dump->failed = true;
        return false;
    }
    *dump->last = table;
    dump->last = &table->next;
    return true;
}

static bool
row_found(void *arg, u32 count, const LinkValue *values)
{
    Dump *dump = arg;
    Shell *shell = dump->shell;
    out_text(shell, "INSERT INTO ");
    out_name(shell, dump->table);
    if (dump->columns != NULL) {
        out_text(shell, "(");
        out_text(shell, dump->columns);
        out_text(shell, ")");
    }
    out_text(shell, " VALUES(");
    for (u32 i = 0; i < count; i++) {
        if (i > 0) out_text(shell, ",");
        if (dump->newlines)
            out_literal(shell, &values[i]);
        else
            out_line_literal(shell, &values[i]);
    }
    out_text(shell, ");\n");
    return !shell->out_failed && rt_load_relaxed(&shell->interrupted) == 0;
}

static bool
sql_found(void *arg, u32 count, const LinkValue *values)
{
    Dump *dump = arg;
    (void)count;
    char *sql = arena_strndup(&dump->arena, values[0].text.p, values[0].text.bytes);
    dump->failed |= sql == NULL;
    if (sql == NULL) return false;
    out_create(dump->shell, sql);
    out_statement_end(dump->shell, sql);
    return true;
}

/* Has the table rowids that its columns do not show?  Then the name that means them. */
typedef struct RowidName {
    bool taken[3], shown, keyed;
    u32 keys;
} RowidName;

static const char *const rowid_names[3] = {"rowid", "_rowid_", "oid"};

/* A row of table_xinfo: number, name, type, not null, default, place in the key. */
static bool
rowid_column(void *arg, u32 count, const LinkValue *values)
{
    RowidName *name = arg;
    char text[16] = "";
    if (count < 6) return true;
    if (values[1].text.bytes < sizeof(text)) memcpy(text, values[1].text.p, values[1].text.bytes);
    for (u32 i = 0; i < 3; i++)
        name->taken[i] |= text_compare_nocase(text, rowid_names[i]) == 0;
    bool is_key = values[5].i > 0;
    name->keys += is_key;
    name->shown = name->keys == 1 &&
                  (name->shown ||
                   (is_key && slice_equal_nocase(values[2].text, SLICE_LITERAL("INTEGER"))));
    return true;
}

/* WITHOUT ROWID tables have an index of the primary key that is no row of sqlite_schema. */
static bool
rowid_keyed(void *arg, u32 count, const LinkValue *values)
{
    (void)count;
    ((RowidName *)arg)->keyed = values[0].i > 0;
    return true;
}

static const char *
rowid_name(Dump *dump, const char *table)
{
    RowidName name = {0};
    if (!dump->rowids ||
        !shell_queryf(dump->shell, rowid_column, &name, "PRAGMA table_xinfo(%w)", table) ||
        !shell_queryf(
            dump->shell, rowid_keyed, &name,
            "SELECT count(*) FROM pragma_index_list(%Q) AS l WHERE l.origin = 'pk' AND NOT "
            "EXISTS (SELECT 1 FROM sqlite_schema WHERE name = l.name)",
            table))
        return NULL;
    if (name.shown || name.keyed) return NULL;
    for (u32 i = 0; i < 3; i++) {
        if (!name.taken[i]) return rowid_names[i];
    }
    return NULL;
}

static void
head_print(Dump *dump, const DumpTable *table)
{
    Shell *shell = dump->shell;
    if (strcmp(table->name, "sqlite_sequence") == 0) {
        if (!dump->data_only) out_text(shell, "DELETE FROM sqlite_sequence;\n");
    } else if (strncmp(table->name, "sqlite_stat", 11) == 0) {
        if (!dump->data_only) out_text(shell, "ANALYZE sqlite_schema;\n");
    } else if (!dump->data_only) {
        out_create(shell, table->sql);
        out_statement_end(shell, table->sql);
    }
}

static bool
table_dump(Dump *dump, const DumpTable *table)
{
    Buf columns = {0};
    /* It comes into being with the first table that counts; without one there are no counters. */
    if (strcmp(table->name, "sqlite_sequence") == 0 && !dump->counts) return true;
    dump->counts = dump->counts || strcasestr(table->sql, "AUTOINCREMENT") != NULL;
    head_print(dump, table);
    dump->table = table->name;
    dump->columns = NULL;
    const char *rowid = rowid_name(dump, table->name);
    bool good = shell_columns(dump->shell, "main", table->name, true, &columns);
    Err err = buf_append_byte(&columns, 0);
    const char *list = err == OK && columns.bytes > 1 ? (const char *)columns.p : "*";
    char *named = rowid != NULL ? arena_printf(&dump->arena, "%s,%s", rowid, list) : NULL;
    dump->columns = named;
    good = good && err == OK && !dump->failed &&
           shell_queryf(dump->shell, row_found, dump, "SELECT %s FROM %w",
                        named != NULL ? named : list, table->name);
    buf_free(&columns);
    return good;
}

/* " AND (name LIKE 'a' OR ...)" of the patterns, in the arena. */
static const char *
where_make(Dump *dump, u32 count, char **pattern)
{
    Buf text = {0};
    Err err = OK;
    for (u32 i = 0; err == OK && i < count; i++) {
        err = buf_append_text(&text, i == 0 ? " AND (name LIKE '" : " OR name LIKE '");
        for (const char *at = pattern[i]; err == OK && *at != 0; at++)
            err = *at == '\'' ? buf_append_text(&text, "''") : buf_append(&text, at, 1);
        if (err == OK) err = buf_append_text(&text, "'");
    }
    if (err == OK && count > 0) err = buf_append_text(&text, ")");
    if (err == OK && dump->no_system)
        err = buf_append_text(&text, " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'");
    const char *where = err == OK ? arena_strndup(&dump->arena, text.p, text.bytes) : NULL;
    buf_free(&text);
    return where;
}

static bool
dump_run(Dump *dump, u32 count, char **pattern)
{
    const char *where = where_make(dump, count, pattern);
    if (where == NULL ||
        !shell_queryf(dump->shell, table_found, dump,
                      "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql IS NOT NULL"
                      "%s ORDER BY name = 'sqlite_sequence', rowid",
                      where))
        return false;
    for (const DumpTable *table = dump->first; table != NULL; table = table->next)
        if (!table_dump(dump, table)) return false;
    if (dump->data_only) return true;
    return shell_queryf(
        dump->shell, sql_found, dump,
        "SELECT sql FROM sqlite_schema WHERE type IN ('index','trigger','view') AND "
        "sql IS NOT NULL%s ORDER BY rowid",
        where);
}

static bool
option_take(Dump *dump, const char *name)
{
    while (*name == '-')
        name++;
    if (strcmp(name, "data-only") == 0)
        dump->data_only = true;
    else if (strcmp(name, "newlines") == 0)
        dump->newlines = true;
    else if (strcmp(name, "nosys") == 0)
        dump->no_system = true;
    else if (strcmp(name, "preserve-rowids") == 0)
        dump->rowids = true;
    else
        return false;
    return true;
}

void
command_dump(Shell *shell, u32 count, char **argument)
{
    Dump dump = {.shell = shell};
    u32 patterns = 0;
    for (u32 i = 0; i < count; i++) {
        if (argument[i][0] != '-') {
            argument[patterns++] = argument[i];
        } else if (!option_take(&dump, argument[i])) {
            shell_complain(shell, "Unknown option \"%s\" on \".dump\"", argument[i]);
            return;
        }
    }
    arena_init(&dump.arena, NULL);
    dump.last = &dump.first;
    if (!dump.data_only) out_text(shell, "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n");
    /* Inside the user's own transaction there is one moment already. */
    LinkError error = {.offset = -1};
    LinkSink sink = {0};
    bool own = shell->link != NULL &&
               link_run(shell->link, SLICE_LITERAL("BEGIN"), &sink, NULL, NULL, &error);
    link_error_clear(&error);
    bool good = dump_run(&dump, patterns, argument);
    if (own) (void)link_run(shell->link, SLICE_LITERAL("ROLLBACK"), &sink, NULL, NULL, &error);
    link_error_clear(&error);
    if (!dump.data_only) out_text(shell, good ? "COMMIT;\n" : "ROLLBACK; -- due to errors\n");
    arena_free(&dump.arena);
}
