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
    Buf columns; /* Of the table being dumped. */
    const char *table;
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

static Err
append_quoted(Buf *buf, Slice text, u8 quote)
{
    Err err = buf_append_byte(buf, quote);
    for (size_t i = 0; i < text.bytes && err == OK; i++) {
        if (text.p[i] == quote) err = buf_append_byte(buf, quote);
        if (err == OK) err = buf_append_byte(buf, text.p[i]);
    }
    return err == OK ? buf_append_byte(buf, quote) : err;
}

/* PRAGMA table_info lists the columns that an INSERT may name. */
static bool
column_found(void *arg, u32 count, const LinkValue *values)
{
    Dump *dump = arg;
    if (count < 2) return true;
    Err err = dump->columns.bytes > 0 ? buf_append_byte(&dump->columns, ',') : OK;
    if (err == OK) err = append_quoted(&dump->columns, values[1].text, '"');
    if (err != OK) dump->failed = true;
    return err == OK;
}

static bool
row_found(void *arg, u32 count, const LinkValue *values)
{
    Dump *dump = arg;
    Shell *shell = dump->shell;
    out_text(shell, "INSERT INTO ");
    out_name(shell, dump->table);
    out_text(shell, " VALUES(");
    for (u32 i = 0; i < count; i++) {
        if (i > 0) out_text(shell, ",");
        out_literal(shell, &values[i]);
    }
    out_text(shell, ");\n");
    return !shell->out_failed && rt_load_relaxed(&shell->interrupted) == 0;
}

static bool
sql_found(void *arg, u32 count, const LinkValue *values)
{
    Shell *shell = ((Dump *)arg)->shell;
    (void)count;
    out_bytes(shell, values[0].text.p, values[0].text.bytes);
    out_text(shell, ";\n");
    return true;
}

/* Run `head` NAME `tail`, the name in quotes of the kind given. */
static bool
named_query(Dump *dump, const char *head, const char *name, u8 quote, const char *tail,
            LinkRow each)
{
    Buf sql = {0};
    Err err = buf_append_text(&sql, head);
    if (err == OK) err = append_quoted(&sql, SLICE(name, strlen(name)), quote);
    if (err == OK) err = buf_append_text(&sql, tail);
    if (err == OK) err = buf_append_byte(&sql, 0);
    bool good = err == OK && shell_query(dump->shell, (const char *)sql.p, each, dump);
    buf_free(&sql);
    return good;
}

static bool
table_dump(Dump *dump, const DumpTable *table)
{
    Buf head = {0};
    bool sequence = strcmp(table->name, "sqlite_sequence") == 0;
    if (sequence)
        out_text(dump->shell, "DELETE FROM sqlite_sequence;\n");
    else
        out_printf(dump->shell, "%s", "");
    if (!sequence) {
        out_text(dump->shell, table->sql);
        out_text(dump->shell, ";\n");
    }
    dump->table = table->name;
    buf_clear(&dump->columns);
    bool good = named_query(dump, "PRAGMA table_info(", table->name, '"', ")", column_found);
    Err err = buf_append_text(&head, "SELECT ");
    if (err == OK)
        err = dump->columns.bytes > 0 ? buf_append(&head, dump->columns.p, dump->columns.bytes)
                                      : buf_append_byte(&head, '*');
    if (err == OK) err = buf_append_text(&head, " FROM ");
    if (err == OK) err = buf_append_byte(&head, 0);
    good = good && err == OK &&
           named_query(dump, (const char *)head.p, table->name, '"', "", row_found);
    buf_free(&head);
    return good && !dump->failed;
}

static bool
dump_run(Dump *dump, const char *pattern)
{
    if (!named_query(dump,
                     "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql IS NOT "
                     "NULL AND tbl_name LIKE ",
                     pattern, '\'', " ORDER BY name = 'sqlite_sequence', rowid", table_found))
        return false;
    for (const DumpTable *table = dump->first; table != NULL; table = table->next)
        if (!table_dump(dump, table)) return false;
    return named_query(dump,
                       "SELECT sql FROM sqlite_schema WHERE type IN ('index','trigger','view') "
                       "AND sql IS NOT NULL AND tbl_name LIKE ",
                       pattern, '\'', " ORDER BY type = 'view', rowid", sql_found);
}

void
command_dump(Shell *shell, u32 count, char **argument)
{
    Dump dump = {.shell = shell};
    arena_init(&dump.arena, NULL);
    dump.last = &dump.first;
    out_text(shell, "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n");
    /* Inside the user's own transaction there is one moment already. */
    LinkError error = {.offset = -1};
    LinkSink sink = {0};
    bool own = shell->link != NULL &&
               link_run(shell->link, SLICE_LITERAL("BEGIN"), &sink, NULL, NULL, &error);
    link_error_clear(&error);
    bool good = dump_run(&dump, count > 0 ? argument[0] : "%");
    if (own) (void)link_run(shell->link, SLICE_LITERAL("ROLLBACK"), &sink, NULL, NULL, &error);
    link_error_clear(&error);
    out_text(shell, good ? "COMMIT;\n" : "ROLLBACK; -- due to errors\n");
    buf_free(&dump.columns);
    arena_free(&dump.arena);
}
