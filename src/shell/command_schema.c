/*
 * command_schema.c -- dot commands that show what is in the database: .tables, .indexes, .schema,
 * .fullschema, .databases, .dbinfo.
 *
 * Every attached database is asked in turn; names of others than main are shown with theirs.
 */
#include <stdio.h>
#include <string.h>

#include "shell/shell.h"

#define INDENT_FROM 79u /* Shorter texts stay on their line. */

/* ---- names in columns ---- */

typedef struct Names {
    Arena arena;
    const char **name;
    u32 count, capacity;
    bool failed;
} Names;

static bool
name_add(void *arg, u32 count, const LinkValue *values)
{
    Names *names = arg;
    (void)count;
    if (names->count == names->capacity) {
        u32 capacity = names->capacity == 0 ? 64 : 2 * names->capacity;
        const char **bigger = mem_realloc(names->name, capacity * sizeof(*bigger));
        if (bigger == NULL) {
            names->failed = true;
            return false;
        }
        names->name = bigger;
        names->capacity = capacity;
    }
    const char *name = arena_strndup(&names->arena, values[0].text.p, values[0].text.bytes);
    if (name == NULL) return false;
    names->name[names->count++] = name;
    return true;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
names_sort(Names *names)
{
    if (names->count > 1)
        sort_items(names->name, names->count, sizeof(*names->name), compare_names);
}

/* As many columns as 80 characters hold, filled downwards. */
static void
names_print(Shell *shell, const Names *names)
{
    u32 widest = 0;
    for (u32 i = 0; i < names->count; i++)
        widest = MAX_OF(widest, (u32)strlen(names->name[i]));
    u32 columns = MAX_OF(1u, 80 / (widest + 2));
    u32 rows = (names->count + columns - 1) / columns;
    for (u32 row = 0; row < rows; row++) {
        for (u32 i = row; i < names->count; i += rows)
            out_printf(shell, "%s%-*s", i < rows ? "" : "  ", (int)widest, names->name[i]);
        out_text(shell, "\n");
    }
}

/* ---- databases ---- */

typedef struct Databases {
    Arena arena;
    u32 count;
    const char *name[32], *file[32];
} Databases;

static bool
database_add(void *arg, u32 count, const LinkValue *values)
{
    Databases *list = arg;
    if (count < 3 || list->count == COUNT_OF(list->name)) return true;
    Slice name = values[1].text, file = values[2].text;
    list->name[list->count] = arena_strndup(&list->arena, name.p, name.bytes);
    list->file[list->count] = arena_strndup(&list->arena, file.bytes > 0 ? file.p : (const u8 *)"",
                                            file.bytes);
    if (list->name[list->count] == NULL || list->file[list->count] == NULL) return false;
    list->count++;
    return true;
}

/* All of them; an empty list after a message. */
static void
databases_read(Shell *shell, Databases *list)
{
    *list = (Databases){0};
    arena_init(&list->arena, NULL);
    if (!shell_query(shell, "PRAGMA database_list", database_add, list)) list->count = 0;
}

void
command_databases(Shell *shell, u32 count, char **argument)
{
    Databases list;
    (void)count;
    (void)argument;
    databases_read(shell, &list);
    for (u32 i = 0; i < list.count; i++) {
        bool main_only = shell->read_only && strcmp(list.name[i], "main") == 0;
        out_printf(shell, "%s: ", list.name[i]);
        out_text(shell, list.file[i][0] != 0 ? list.file[i] : "\"\"");
        out_text(shell, main_only ? " r/o\n" : " r/w\n");
    }
    arena_free(&list.arena);
}

/* ---- .tables, .indexes ---- */

/* Names that `select` finds in each database; its %w is the database, its %Q the pattern. */
static void
names_command(Shell *shell, const char *select, const char *pattern)
{
    Databases list;
    Names names = {0};
    databases_read(shell, &list);
    arena_init(&names.arena, NULL);
    bool good = list.count > 0;
    for (u32 i = 0; good && i < list.count; i++) {
        bool is_main = strcmp(list.name[i], "main") == 0;
        char prefix[SHELL_NAME_MAX];
        snprintf(prefix, sizeof(prefix), "%s%s", is_main ? "" : list.name[i], is_main ? "" : ".");
        good = shell_queryf(shell, name_add, &names, select, prefix, list.name[i], pattern);
    }
    if (good && !names.failed) {
        names_sort(&names);
        names_print(shell, &names);
    }
    arena_free(&names.arena);
    arena_free(&list.arena);
    mem_free(names.name);
}

void
command_tables(Shell *shell, u32 count, char **argument)
{
    names_command(shell,
                  "SELECT %Q || name FROM %w.sqlite_schema WHERE type IN ('table','view') AND "
                  "substr(name,1,7) <> 'sqlite_' AND name LIKE %Q",
                  count > 0 ? argument[0] : "%");
}

void
command_indexes(Shell *shell, u32 count, char **argument)
{
    names_command(shell,
                  "SELECT %Q || name FROM %w.sqlite_schema WHERE type = 'index' AND tbl_name LIKE "
                  "%Q",
                  count > 0 ? argument[0] : "%");
}

/* ---- .schema ---- */

typedef struct SchemaLine {
    struct SchemaLine *next;
    char *sql, *name;
    bool is_view;
} SchemaLine;

typedef struct Schema {
    Shell *shell;
    Arena arena;
    SchemaLine *first, **last;
    bool indent, no_system, plain; /* plain: no columns of views. */
    const char *database;
} Schema;

static bool
line_add(void *arg, u32 count, const LinkValue *values)
{
    Schema *schema = arg;
    (void)count;
    SchemaLine *line = ARENA_NEW(&schema->arena, SchemaLine);
    if (line == NULL) return false;
    line->sql = arena_strndup(&schema->arena, values[0].text.p, values[0].text.bytes);
    line->name = arena_strndup(&schema->arena, values[1].text.p, values[1].text.bytes);
    line->is_view = slice_equal(values[2].text, SLICE_LITERAL("view"));
    *schema->last = line;
    schema->last = &line->next;
    return line->sql != NULL && line->name != NULL;
}

/* A comment after a view: its name and columns. */
static void
view_comment(Schema *schema, const SchemaLine *line)
{
    Buf columns = {0};
    if (shell_columns(schema->shell, schema->database, line->name, true, &columns) &&
        columns.bytes > 0) {
        out_text(schema->shell, "\n/* ");
        out_name(schema->shell, line->name);
        out_text(schema->shell, "(");
        out_bytes(schema->shell, columns.p, columns.bytes);
        out_text(schema->shell, ") */");
    }
    buf_free(&columns);
}

/* May the text be laid out anew?  Not if it is short, or has comments or line ends. */
static bool
may_indent(const char *sql)
{
    size_t bytes = strlen(sql);
    return bytes >= INDENT_FROM && strncmp(sql, "CREATE TABLE ", 13) == 0 &&
           sql[bytes - 1] == ')' && strchr(sql, '\n') == NULL && strstr(sql, "--") == NULL &&
           strstr(sql, "/*") == NULL;
}

/* One column or constraint a line. */
static void
indented(Shell *shell, const char *sql)
{
    u32 depth = 0;
    char quote = 0;
    for (const char *at = sql; *at != 0; at++) {
        if (quote != 0) {
            if (*at == quote) quote = 0;
        } else if (*at == '\'' || *at == '"' || *at == '`' || *at == '[') {
            quote = *at == '[' ? ']' : *at;
        }
        bool plain = quote == 0;
        if (plain && *at == ')' && --depth == 0) out_text(shell, "\n");
        out_bytes(shell, at, 1);
        bool first = plain && *at == '(' && ++depth == 1;
        if (!first && !(plain && *at == ',' && depth == 1)) continue;
        out_text(shell, "\n  ");
        while (at[1] == ' ')
            at++;
    }
}

/* "CREATE TABLE x" of another database is shown as "CREATE TABLE two.x". */
static const char *
qualified_head(Schema *schema, const char *sql)
{
    static const char *const heads[] = {"CREATE TABLE ", "CREATE VIEW ", "CREATE INDEX ",
                                        "CREATE UNIQUE INDEX ", "CREATE TRIGGER "};
    if (strcmp(schema->database, "main") == 0) return sql;
    for (u32 i = 0; i < COUNT_OF(heads); i++) {
        size_t bytes = strlen(heads[i]);
        if (strncmp(sql, heads[i], bytes) != 0) continue;
        out_text(schema->shell, heads[i]);
        out_name(schema->shell, schema->database);
        out_text(schema->shell, ".");
        return sql + bytes;
    }
    return sql;
}

static void
line_print(Schema *schema, const SchemaLine *line)
{
    Shell *shell = schema->shell;
    const char *sql = qualified_head(schema, line->sql);
    if (schema->indent && may_indent(sql)) {
        bool quoted = sql[13] == '"' || sql[13] == '\'';
        if (quoted) out_text(shell, "CREATE TABLE IF NOT EXISTS ");
        indented(shell, sql + (quoted ? 13 : 0));
    } else {
        out_create(shell, sql);
    }
    if (line->is_view && !schema->plain) {
        view_comment(schema, line);
        out_text(shell, ";\n");
    } else {
        out_statement_end(shell, sql);
    }
}

static void
schema_show(Schema *schema, const char *pattern)
{
    Databases list;
    databases_read(schema->shell, &list);
    for (u32 i = 0; i < list.count; i++) {
        schema->first = NULL;
        schema->last = &schema->first;
        schema->database = list.name[i];
        bool good = shell_queryf(
            schema->shell, line_add, schema,
            "SELECT sql, name, type FROM %w.sqlite_schema WHERE sql IS NOT NULL AND "
            "(lower(tbl_name) LIKE lower(%Q) OR lower(%Q || '.' || tbl_name) LIKE lower(%Q))%s "
            "ORDER BY rowid",
            list.name[i], pattern, list.name[i], pattern,
            schema->no_system ? " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'" : "");
        for (SchemaLine *line = schema->first; good && line != NULL; line = line->next)
            line_print(schema, line);
        arena_reset(&schema->arena);
    }
    arena_free(&list.arena);
}

/* .schema of the table that has no row. */
static bool
is_schema_table(const char *name)
{
    static const char *const names[] = {"sqlite_schema", "sqlite_master", "sqlite_temp_schema",
                                        "sqlite_temp_master"};
    for (u32 i = 0; i < COUNT_OF(names); i++) {
        if (text_compare_nocase(name, names[i]) == 0) return true;
    }
    return false;
}

void
command_schema(Shell *shell, u32 count, char **argument)
{
    Schema schema = {.shell = shell};
    const char *pattern = NULL;
    for (u32 i = 0; i < count; i++) {
        const char *word = argument[i];
        if (strcmp(word, "--indent") == 0 || strcmp(word, "-indent") == 0) {
            schema.indent = true;
        } else if (strcmp(word, "--nosys") == 0 || strcmp(word, "-nosys") == 0) {
            schema.no_system = true;
        } else if (word[0] == '-' || pattern != NULL) {
            shell_usage(shell, "schema");
            return;
        } else {
            pattern = word;
        }
    }
    if (pattern != NULL && is_schema_table(pattern)) {
        out_printf(shell,
                   "CREATE TABLE %s (\n  type text,\n  name text,\n  tbl_name text,\n"
                   "  rootpage integer,\n  sql text\n);\n",
                   pattern);
        return;
    }
    arena_init(&schema.arena, NULL);
    schema_show(&schema, pattern != NULL ? pattern : "%");
    arena_free(&schema.arena);
}

static bool
count_row(void *arg, u32 count, const LinkValue *values)
{
    (void)count;
    *(i64 *)arg = values[0].i;
    return true;
}

static bool
statistics_row(void *arg, u32 count, const LinkValue *values)
{
    Shell *shell = arg;
    out_text(shell, "INSERT INTO sqlite_stat1 VALUES(");
    for (u32 i = 0; i < count; i++) {
        if (i > 0) out_text(shell, ",");
        out_literal(shell, &values[i]);
    }
    out_text(shell, ");\n");
    return true;
}

void
command_fullschema(Shell *shell, u32 count, char **argument)
{
    Schema schema = {.shell = shell, .no_system = true, .plain = true};
    i64 tables = 0;
    if (count > 0) schema.indent = strcmp(argument[0], "--indent") == 0;
    arena_init(&schema.arena, NULL);
    schema_show(&schema, "%");
    arena_free(&schema.arena);
    if (!shell_query(shell, "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'",
                     count_row, &tables))
        return;
    if (tables == 0) {
        out_text(shell, "/* No STAT tables available */\n");
        return;
    }
    out_text(shell, "ANALYZE sqlite_schema;\n");
    if (shell_query(shell, "SELECT * FROM sqlite_stat1", statistics_row, shell))
        out_text(shell, "ANALYZE sqlite_schema;\n");
}

/* ---- .dbinfo ---- */

static bool
text_row(void *arg, u32 count, const LinkValue *values)
{
    Shell *shell = arg;
    char room[40];
    (void)count;
    Slice text = value_text(shell, &values[0], room);
    out_bytes(shell, text.p, text.bytes);
    out_text(shell, "\n");
    return true;
}

void
command_dbinfo(Shell *shell, u32 count, char **argument)
{
    static const struct {
        const char *name, *sql;
    } fact[] = {
        {"database page size:", "PRAGMA page_size"},
        {"database page count:", "PRAGMA page_count"},
        {"schema cookie:", "PRAGMA schema_version"},
        {"text encoding:", "PRAGMA encoding"},
        {"user version:", "PRAGMA user_version"},
        {"application id:", "PRAGMA application_id"},
        {"number of tables:", "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"},
        {"number of indexes:", "SELECT count(*) FROM sqlite_schema WHERE type = 'index'"},
        {"number of triggers:", "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'"},
        {"number of views:", "SELECT count(*) FROM sqlite_schema WHERE type = 'view'"},
        {"schema size:", "SELECT ifnull(total(length(sql)), 0) FROM sqlite_schema"},
    };
    (void)count;
    (void)argument;
    for (u32 i = 0; i < COUNT_OF(fact); i++) {
        out_printf(shell, "%-20s ", fact[i].name);
        if (!shell_query(shell, fact[i].sql, text_row, shell)) return;
    }
}

/* ---- columns ---- */

typedef struct Columns {
    Buf *out;
    bool plain, failed;
} Columns;

static bool
column_add(void *arg, u32 count, const LinkValue *values)
{
    Columns *columns = arg;
    if (count < 2) return true;
    Slice name = values[1].text;
    Err err = columns->out->bytes > 0 ? buf_append_byte(columns->out, ',') : OK;
    bool quote = !columns->plain;
    if (columns->plain) quote = !name_is_plain(name);
    if (quote && err == OK) err = buf_append_byte(columns->out, '"');
    for (size_t i = 0; err == OK && i < name.bytes; i++) {
        if (quote && name.p[i] == '"') err = buf_append_byte(columns->out, '"');
        if (err == OK) err = buf_append_byte(columns->out, name.p[i]);
    }
    if (quote && err == OK) err = buf_append_byte(columns->out, '"');
    columns->failed |= err != OK;
    return err == OK;
}

bool
shell_columns(Shell *shell, const char *schema, const char *table, bool plain, Buf *out)
{
    Columns columns = {out, plain, false};
    return shell_queryf(shell, column_add, &columns, "PRAGMA %w.table_info(%w)", schema, table) &&
           !columns.failed;
}
