/*
 * command_copy.c -- .clone and .restore: everything of one database into another, by SQL.
 *
 * Tables come first with their rows and rowids, then counters, then indexes, views and triggers, so
 * that nothing fires.  All of it is one transaction of the target.
 */
#include <stdio.h>
#include <string.h>

#include "shell/shell.h"

typedef struct Object {
    struct Object *next;
    const char *type, *name, *sql;
} Object;

typedef struct Copy {
    Shell *shell;
    Link *from, *to;
    Arena arena;
    Object *first, **last;
    LinkLoad *load;
    u32 columns;
    LinkError error;
    bool failed;
} Copy;

/* Run SQL on one of the two; the error stays in copy->error. */
static bool
run(Copy *copy, Link *link, LinkRow each, const char *sql)
{
    LinkSink sink = {.arg = copy, .row = each};
    bool good = link_run(link, SLICE(sql, strlen(sql)), &sink, NULL, NULL, &copy->error);
    return good && !copy->failed;
}

static char *
quoted(Copy *copy, const char *name, char quote)
{
    size_t bytes = strlen(name);
    char *text = arena_alloc(&copy->arena, 2 * bytes + 3), *at = text;
    if (text == NULL) return NULL;
    *at++ = quote;
    for (size_t i = 0; i < bytes; i++) {
        if (name[i] == quote) *at++ = quote;
        *at++ = name[i];
    }
    *at++ = quote;
    *at = 0;
    return text;
}

static bool
object_add(void *arg, u32 count, const LinkValue *values)
{
    Copy *copy = arg;
    const char *text[3] = {0};
    Object *object = ARENA_NEW(&copy->arena, Object);
    for (u32 i = 0; i < 3 && i < count; i++)
        text[i] = arena_strndup(&copy->arena, values[i].text.p, values[i].text.bytes);
    copy->failed = object == NULL || text[0] == NULL || text[1] == NULL || text[2] == NULL;
    if (copy->failed) return false;
    *object = (Object){.type = text[0], .name = text[1], .sql = text[2]};
    *copy->last = object;
    copy->last = &object->next;
    return true;
}

/* Names of columns that can be written; the first may be the rowid. */
typedef struct Names {
    Copy *copy;
    Buf list;
    u32 count;
    bool taken[3]; /* Columns called rowid, oid, _rowid_. */
    bool keyed;
} Names;

static const char *const rowid_names[3] = {"rowid", "oid", "_rowid_"};

static bool
column_add(void *arg, u32 count, const LinkValue *values)
{
    Names *names = arg;
    if (count < 2) return true;
    char *name = arena_strndup(&names->copy->arena, values[1].text.p, values[1].text.bytes);
    char *text = name != NULL ? quoted(names->copy, name, '"') : NULL;
    Err err = text == NULL ? ERR_NOMEM : OK;
    for (u32 i = 0; err == OK && i < 3; i++)
        names->taken[i] |= text_compare_nocase(name, rowid_names[i]) == 0;
    if (err == OK && names->count > 0) err = buf_append_byte(&names->list, ',');
    if (err == OK) err = buf_append_text(&names->list, text);
    names->count++;
    names->copy->failed |= err != OK;
    return err == OK;
}

static bool
row_copy(void *arg, u32 count, const LinkValue *values)
{
    Copy *copy = arg;
    (void)count;
    copy->failed = !link_load_row(copy->load, values, &copy->error);
    return !copy->failed && rt_load_relaxed(&copy->shell->interrupted) == 0;
}

/* "rowid, " or another name of it that is free; "" for tables without, or if none is free. */
static const char *
rowid_name(const Names *names)
{
    if (names->keyed) return "";
    for (u32 i = 0; i < 3; i++) {
        if (!names->taken[i]) return i == 0 ? "rowid," : i == 1 ? "oid," : "_rowid_,";
    }
    return "";
}

static bool
names_read(Copy *copy, const Object *table, Names *names)
{
    Buf sql = {0};
    LinkSink sink = {.arg = names, .row = column_add};
    char *name = quoted(copy, table->name, '"');
    Err err = name == NULL ? ERR_NOMEM : buf_printf(&sql, "PRAGMA table_info(%s)", name);
    if (err == OK) err = buf_append_byte(&sql, 0);
    bool good = err == OK &&
                link_run(copy->from, SLICE(sql.p, sql.bytes - 1), &sink, NULL, NULL, &copy->error);
    buf_clear(&sql);
    /* A table without rowids says so by refusing the name. */
    if (good && err == OK)
        err = buf_printf(&sql, "SELECT %s 1 FROM %s LIMIT 0", rowid_name(names), name);
    LinkError probe = {.offset = -1};
    LinkSink none = {0};
    if (good && err == OK)
        names->keyed = !link_run(copy->from, buf_slice(&sql), &none, NULL, NULL, &probe);
    link_error_clear(&probe);
    buf_free(&sql);
    return good && err == OK && !copy->failed;
}

static bool
rows_copy(Copy *copy, const Object *table)
{
    Names names = {.copy = copy};
    Buf select = {0}, insert = {0};
    char *name = quoted(copy, table->name, '"');
    bool good = name != NULL && names_read(copy, table, &names);
    const char *rowid = rowid_name(&names);
    u32 columns = names.count + (rowid[0] != 0);
    Err err = good ? buf_printf(&select, "SELECT %s%.*s FROM %s", rowid, (int)names.list.bytes,
                                (const char *)names.list.p, name)
                   : ERR_NOMEM;
    if (err == OK)
        err = buf_printf(&insert, "INSERT INTO %s(%s%.*s) VALUES(", name, rowid,
                         (int)names.list.bytes, (const char *)names.list.p);
    for (u32 i = 0; err == OK && i < columns; i++)
        err = buf_append_text(&insert, i == 0 ? "?" : ",?");
    if (err == OK) err = buf_append(&insert, ")", 2);
    if (err == OK) err = buf_append_byte(&select, 0);
    if (err == OK)
        copy->load = link_load_begin(copy->to, (const char *)insert.p, columns, &copy->error);
    good = err == OK && copy->load != NULL &&
           run(copy, copy->from, row_copy, (const char *)select.p);
    if (copy->load != NULL && !link_load_end(copy->load, good, &copy->error)) good = false;
    copy->load = NULL;
    buf_free(&names.list);
    buf_free(&select);
    buf_free(&insert);
    return good && rt_load_relaxed(&copy->shell->interrupted) == 0;
}

/* One object; tables with their rows.  `say`: print its name. */
static bool
object_copy(Copy *copy, const Object *object, bool say)
{
    bool is_table = strcmp(object->type, "table") == 0;
    bool is_system = strncmp(object->name, "sqlite_", 7) == 0;
    if (say && !is_system) out_printf(copy->shell, "%s... ", object->name);
    bool good = true;
    if (strcmp(object->name, "sqlite_sequence") == 0)
        good = run(copy, copy->to, NULL, "DELETE FROM sqlite_sequence");
    else if (strncmp(object->name, "sqlite_stat", 11) == 0)
        good = run(copy, copy->to, NULL, "ANALYZE sqlite_schema");
    else
        good = run(copy, copy->to, NULL, object->sql);
    if (good && is_table) good = rows_copy(copy, object);
    if (say && !is_system) out_text(copy->shell, good ? "done\n" : "\n");
    return good;
}

static bool
number_copy(void *arg, u32 count, const LinkValue *values)
{
    Copy *copy = arg;
    char sql[80];
    (void)count;
    snprintf(sql, sizeof(sql), "PRAGMA user_version=%lld;PRAGMA application_id=%lld",
             (long long)values[0].i, (long long)values[1].i);
    copy->failed = !run(copy, copy->to, NULL, sql);
    return !copy->failed;
}

static bool
copy_run(Copy *copy, bool say)
{
    copy->last = &copy->first;
    bool good = run(copy, copy->from, object_add,
                    "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY CASE "
                    "WHEN name = 'sqlite_sequence' THEN 1 WHEN type = 'table' THEN 0 WHEN type = "
                    "'index' THEN 2 WHEN type = 'view' THEN 3 ELSE 4 END, rowid");
    for (const Object *object = copy->first; good && object != NULL; object = object->next)
        good = object_copy(copy, object, say);
    return good && run(copy, copy->from, number_copy,
                       "SELECT user_version, application_id FROM pragma_user_version, "
                       "pragma_application_id");
}

/* Inside a transaction of the target; rolled back when it fails. */
static bool
copy_all(Shell *shell, Link *from, Link *to, bool say, bool (*prepare)(Copy *copy))
{
    Copy copy = {.shell = shell, .from = from, .to = to, .error = {.offset = -1}};
    arena_init(&copy.arena, NULL);
    bool own = run(&copy, to, NULL, "BEGIN");
    bool good = own && (prepare == NULL || prepare(&copy)) && copy_run(&copy, say);
    if (!good)
        shell_complain(shell, "Error: %s",
                       copy.error.text != NULL                     ? copy.error.text
                       : rt_load_relaxed(&shell->interrupted) != 0 ? "interrupted"
                                                                   : "out of memory");
    LinkError end = {.offset = -1};
    LinkSink none = {0};
    const char *sql = good ? "COMMIT" : "ROLLBACK";
    if (own && !link_run(to, SLICE(sql, strlen(sql)), &none, NULL, NULL, &end) && good) {
        shell_complain(shell, "Error: %s", end.text != NULL ? end.text : "out of memory");
        good = false;
    }
    link_error_clear(&end);
    link_error_clear(&copy.error);
    arena_free(&copy.arena);
    return good;
}

/* ---- .clone ---- */

void
command_clone(Shell *shell, u32 count, char **argument)
{
    RtStat stat;
    LinkError error = {.offset = -1};
    if (count != 1) {
        shell_usage(shell, "clone");
        return;
    }
    if (shell->link == NULL) return;
    if (rt_file_stat(NULL, argument[0], &stat, NULL) == OK) {
        shell_complain(shell, "File \"%s\" already exists.", argument[0]);
        return;
    }
    Link *to = link_open_file(argument[0], false, &error);
    if (to == NULL)
        shell_complain(shell, "Error: unable to open database \"%s\": %s", argument[0],
                       error.text != NULL ? error.text : "out of memory");
    else
        (void)copy_all(shell, shell->link, to, true, NULL);
    link_close(to);
    link_error_clear(&error);
}

/* ---- .restore ---- */

/* The target is emptied first. */
static bool
target_empty(Copy *copy)
{
    copy->last = &copy->first;
    bool good = run(copy, copy->to, object_add,
                    "SELECT type, name, '' FROM sqlite_schema WHERE type IN ('table', 'view') AND "
                    "name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type DESC, rowid DESC");
    for (const Object *object = copy->first; good && object != NULL; object = object->next) {
        Buf sql = {0};
        char *name = quoted(copy, object->name, '"');
        Err err = name == NULL ? ERR_NOMEM : buf_printf(&sql, "DROP %s %s", object->type, name);
        if (err == OK) err = buf_append_byte(&sql, 0);
        good = err == OK && run(copy, copy->to, NULL, (const char *)sql.p);
        buf_free(&sql);
    }
    copy->first = NULL;
    return good;
}

void
command_restore(Shell *shell, u32 count, char **argument)
{
    RtStat stat;
    LinkError error = {.offset = -1};
    if (count < 1 || count > 2 || (count == 2 && strcmp(argument[0], "main") != 0)) {
        shell_usage(shell, "restore");
        return;
    }
    const char *file = argument[count - 1];
    if (shell->link == NULL) return;
    bool exists = rt_file_stat(NULL, file, &stat, NULL) == OK;
    Link *from = exists ? link_open_file(file, true, &error) : NULL;
    if (from == NULL)
        shell_complain(shell, "Error: cannot open \"%s\"%s%s", file, error.text != NULL ? ": " : "",
                       error.text != NULL ? error.text : "");
    else
        (void)copy_all(shell, from, shell->link, false, target_empty);
    link_close(from);
    link_error_clear(&error);
}
