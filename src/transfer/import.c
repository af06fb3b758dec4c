/*
 * import.c -- a SQLite file into an empty database.
 *
 * The schema goes first, row for row as it stands; then each table's rows, read in the order of
 * their keys, which is the order in which the store likes them; then its indexes, built from the
 * rows and not read from the file, so that an index which disagrees with its table cannot survive.
 */
#include <stdio.h>

#include "session/bulk.h"
#include "transfer/layout.h"
#include "transfer/transfer.h"

#define PROGRESS_ROWS 4096u

typedef struct Import {
    Sqf *sqf;
    Session *session;
    const TransferImport *options;
    TransferCounts *counts;
    ErrMsg *msg;
    BulkLoad *load;
    SqfSchemaRow *source; /* Of the file... */
    BulkSchemaRow *row;   /* ... and those that are taken over, in the same order. */
    u32 *root;            /* By row taken over. */
    bool *left_out;       /* By row of the file. */
    u32 sources, rows;
    /* The table at hand. */
    const TableDef *table;
    Layout layout;
    Arena arena, text;
    Cell *cell, *value; /* The row; the record. */
    u64 table_rows;
} Import;

static void
note(Import *import, const char *format, const char *name, const char *text)
{
    char line[512];
    if (import->options->note == NULL) return;
    snprintf(line, sizeof(line), format, name, text);
    import->options->note(import->options->arg, line);
}

static void
progress(Import *import, const char *what)
{
    if (import->options->progress == NULL) return;
    import->options->progress(import->options->arg, what, sqf_pages_read(import->sqf),
                              sqf_info(import->sqf)->pages);
}

static Err
session_failed(Import *import, Err err)
{
    return err_set(import->msg, err, "%s", err_message(session_error(import->session)));
}

/* ---- the schema ---- */

static bool
is_virtual(const SqfSchemaRow *row)
{
    static const char head[] = "CREATE VIRTUAL TABLE";
    return row->sql != NULL && strlen(row->sql) >= sizeof(head) - 1 &&
           slice_equal_nocase(SLICE(row->sql, sizeof(head) - 1), SLICE_LITERAL(head));
}

/* What kind of tree is at the root? */
static Err
root_kind(Import *import, const SqfSchemaRow *row, BulkTree *tree_out)
{
    const SqfInfo *info = sqf_info(import->sqf);
    *tree_out = BULK_NO_TREE;
    if (row->root == 0) return OK;
    *tree_out = BULK_KEY_TREE;
    if (strcmp(row->type, "index") == 0) return OK;
    u8 *page = mem_alloc(info->page_bytes);
    if (page == NULL) return err_set(import->msg, ERR_NOMEM, NULL);
    Err err = sqf_read_page(import->sqf, row->root, page, import->msg);
    u32 kind = err == OK ? page[row->root == 1 ? SQF_HEADER_BYTES : 0] : 0;
    mem_free(page);
    if (err == OK && sqf_is_index(kind)) return OK;
    *tree_out = BULK_ROWID_TREE;
    if (err == ERR_CORRUPT && import->options->salvage) {
        err_clear(import->msg); /* Its rows are lost; said when they are looked for. */
        return OK;
    }
    return err;
}

static Err
schema_take(Import *import, const SqfSchemaRow *from)
{
    BulkTree tree;
    if (is_virtual(from) && !import->options->keep_virtual) {
        if (!import->options->skip_virtual) {
            return err_set(import->msg, ERR_UNSUPPORTED,
                           "table %s is a virtual table, which cannot be imported; with "
                           "--skip-virtual everything else is",
                           from->name);
        }
        import->counts->left_out++;
        note(import, "virtual table %s is left out%s", from->name, "");
        return OK;
    }
    Err err = root_kind(import, from, &tree);
    if (err != OK) return err;
    import->row[import->rows] = (BulkSchemaRow){from->rowid, from->type, from->name,
                                                from->table, from->sql,  tree};
    import->root[import->rows] = from->root;
    import->rows++;
    import->counts->tables += strcmp(from->type, "table") == 0;
    import->counts->views += strcmp(from->type, "view") == 0;
    import->counts->triggers += strcmp(from->type, "trigger") == 0;
    return OK;
}

/* Salvage: which object does the message complain of?  It is left out, with what belongs to it.
   False: none that could be. */
static bool
leave_out(Import *import, const char *message)
{
    static const char head[] = "malformed database schema (";
    const char *name = message + sizeof(head) - 1, *end = NULL;
    bool some = false;
    if (strncmp(message, head, sizeof(head) - 1) == 0) end = strstr(name, ") - ");
    if (end == NULL) return false;
    Slice wanted = SLICE(name, (size_t)(end - name));
    for (u32 i = 0; i < import->sources; i++) {
        const SqfSchemaRow *row = &import->source[i];
        bool meant = slice_equal_nocase(SLICE(row->name, strlen(row->name)), wanted) ||
                     slice_equal_nocase(SLICE(row->table, strlen(row->table)), wanted);
        if (!meant || import->left_out[i]) continue;
        import->left_out[i] = some = true;
        note(import, "%s is left out: %s", row->name, message);
    }
    return some;
}

static Err
schema_try(Import *import)
{
    TransferCounts *counts = import->counts;
    Err err = OK;
    import->rows = 0;
    counts->tables = counts->views = counts->triggers = counts->left_out = 0;
    for (u32 i = 0; err == OK && i < import->sources; i++) {
        if (import->left_out[i])
            counts->left_out++;
        else
            err = schema_take(import, &import->source[i]);
    }
    if (err != OK) return err;
    err = bulk_load_begin(import->session, import->row, import->rows, &import->load);
    return err == OK ? OK : session_failed(import, err);
}

static Err
schema_load(Import *import)
{
    Arena *arena = &import->arena;
    Err err = sqf_schema(import->sqf, arena, &import->source, &import->sources, import->msg);
    if (err != OK) return err;
    import->row = ARENA_NEW_ARRAY(arena, BulkSchemaRow, import->sources + 1);
    import->root = ARENA_NEW_ARRAY(arena, u32, import->sources + 1);
    import->left_out = ARENA_NEW_ARRAY(arena, bool, import->sources + 1);
    if (import->row == NULL || import->root == NULL || import->left_out == NULL)
        return err_set(import->msg, ERR_NOMEM, NULL);
    for (;;) {
        err = schema_try(import);
        if (err == OK || !import->options->salvage || !leave_out(import, err_message(import->msg)))
            return err;
        err_clear(import->msg);
    }
}

/* ---- rows ---- */

/* A row that cannot be used: an error, or a loss that is counted. */
static Err
row_lost(Import *import, i64 rowid, const char *why)
{
    if (!import->options->salvage) {
        return err_set(import->msg, ERR_CORRUPT, "row %lld %s", (long long)rowid, why);
    }
    import->counts->rows_lost++;
    return OK;
}

static Err
row_take(void *arg, i64 rowid, Slice payload)
{
    Import *import = arg;
    const TableDef *table = import->table;
    const Layout *layout = &import->layout;
    u32 count;
    bool exists;
    arena_reset(&import->text);
    Err err = sqf_record_decode(payload, sqf_info(import->sqf)->encoding, &import->text,
                                layout->count, import->value, &count);
    if (err == ERR_CORRUPT) return row_lost(import, rowid, "is damaged");
    if (err != OK) return err_set(import->msg, err, NULL);
    for (u32 i = 0; i < layout->count; i++) {
        const ColumnDef *column = &table->column[layout->column[i]];
        Cell *cell = &import->cell[layout->column[i]];
        *cell = i < count ? import->value[i] : column->default_value;
        if (layout->compact[i] && cell->type == CELL_INT) *cell = cell_real((f64)cell->u.i);
    }
    if (table->rowid_column != COLUMN_ROWID) import->cell[table->rowid_column] = cell_int(rowid);
    err = bulk_load_row(import->load, import->cell, rowid, &exists);
    if (err != OK) return session_failed(import, err);
    if (exists) return row_lost(import, rowid, "has a key that is there already");
    import->counts->rows++;
    if (++import->table_rows % PROGRESS_ROWS == 0) progress(import, table->name);
    return OK;
}

static Err
table_load(Import *import, u32 at)
{
    const TableDef *table = bulk_load_find(import->load, import->row[at].name);
    if (table == NULL)
        return err_set(import->msg, ERR_INTERNAL, "table %s got lost", import->row[at].name);
    ArenaMark mark = arena_mark(&import->arena);
    import->table = table;
    import->table_rows = 0;
    import->cell = ARENA_NEW_ARRAY(&import->arena, Cell, table->column_count + 1u);
    Err err = import->cell != NULL ? layout_make(table, &import->arena, &import->layout)
                                   : ERR_NOMEM;
    import->value = ARENA_NEW_ARRAY(&import->arena, Cell, import->layout.count + 1);
    if (err == OK && import->value == NULL) err = ERR_NOMEM;
    if (err != OK) return err_set(import->msg, err, NULL);
    err = bulk_load_table(import->load, table);
    if (err != OK) return session_failed(import, err);
    progress(import, table->name);
    u32 root = import->root[at];
    err = table->without_rowid ? sqf_scan_index(import->sqf, root, row_take, import, import->msg)
                               : sqf_scan_table(import->sqf, root, row_take, import, import->msg);
    arena_rewind(&import->arena, mark);
    if (err == ERR_CORRUPT) {
        ErrMsg inner = {0};
        err_move(&inner, import->msg);
        err_set(import->msg, err, "table %s, after %llu rows: %s", table->name,
                (unsigned long long)import->table_rows, err_message(&inner));
        err_clear(&inner);
    }
    return err;
}

static Err
indexes_salvage(Import *import, const TableDef *table)
{
    u64 deleted;
    char text[40];
    progress(import, table->name);
    Err err = bulk_load_indexes_loose(import->load, table, &deleted);
    if (err != OK) return session_failed(import, err);
    import->counts->indexes += table->index_count;
    import->counts->rows -= deleted;
    import->counts->rows_lost += deleted;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)deleted);
    if (deleted > 0) note(import, "table %s: %s rows break its unique indexes", table->name, text);
    return OK;
}

static Err
indexes_load(Import *import, const TableDef *table)
{
    Err err = OK;
    if (import->options->salvage && table->index_count > 0) return indexes_salvage(import, table);
    /* The list is newest first. */
    for (u32 k = table->index_count; err == OK && k-- > 0;) {
        const IndexDef *index = table->index[k];
        progress(import, index->name);
        err = bulk_load_index(import->load, index);
        if (err == ERR_CONSTRAINT_UNIQUE) {
            return err_set(import->msg, ERR_CORRUPT,
                           "the rows of table %s break the unique index %s: %s", table->name,
                           index->name, err_message(session_error(import->session)));
        }
        if (err != OK) return session_failed(import, err);
        import->counts->indexes++;
    }
    return err;
}

static Err
numbers_load(Import *import)
{
    const SqfInfo *info = sqf_info(import->sqf);
    const struct {
        const char *name;
        i64 number;
    } number[] = {
        {"user_version", info->user_version},    {"application_id", info->application_id},
        {TRANSFER_PAGE_BYTES, info->page_bytes}, {TRANSFER_ENCODING, info->encoding},
        {TRANSFER_VACUUM, info->vacuum},
    };
    Err err = OK;
    for (u32 i = 0; err == OK && i < COUNT_OF(number); i++)
        err = bulk_load_number(import->load, number[i].name, number[i].number);
    return err == OK ? OK : session_failed(import, err);
}

static Err
import_run(Import *import)
{
    Err err = schema_load(import);
    for (u32 i = 0; err == OK && i < import->rows; i++) {
        if (import->row[i].tree == BULK_NO_TREE || strcmp(import->row[i].type, "table") != 0)
            continue;
        err = table_load(import, i);
        if (err == OK) err = indexes_load(import, import->table);
    }
    if (err == OK) err = numbers_load(import);
    if (err == OK) err = sqf_check_free(import->sqf, import->msg);
    if (err == OK) err = sqf_unchanged(import->sqf, import->msg);
    if (err != OK) return err;
    err = bulk_load_finish(import->load);
    return err == OK ? OK : session_failed(import, err);
}

Err
transfer_import(Sqf *sqf, Session *session, const TransferImport *options,
                TransferCounts *counts_out, ErrMsg *msg)
{
    Import import = {
        .sqf = sqf, .session = session, .options = options, .counts = counts_out, .msg = msg};
    *counts_out = (TransferCounts){0};
    arena_init(&import.arena, NULL);
    arena_init(&import.text, NULL);
    Err err = import_run(&import);
    bulk_load_close(import.load);
    arena_free(&import.arena);
    arena_free(&import.text);
    return err == OK || msg->err != OK ? err : err_set(msg, err, NULL);
}
