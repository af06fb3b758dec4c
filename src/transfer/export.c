/*
 * export.c -- a database into a SQLite file.
 *
 * One snapshot; tables and indexes are written in the order of their schema rows, each tree once
 * from its leaves up; the schema itself comes last, because its rows are known by then and its root
 * is page 1.
 */
#include "session/bulk.h"
#include "transfer/layout.h"
#include "transfer/sort.h"
#include "transfer/transfer.h"

#define PROGRESS_ROWS 4096u

/* A row of sqlite_schema, in the export's arena. */
typedef struct SchemaText {
    i64 rowid;
    const char *type, *name, *table, *sql;
    bool has_tree;
} SchemaText;

typedef struct Export {
    Session *session;
    const TransferExport *options;
    TransferCounts *counts;
    ErrMsg *msg;
    BulkDump *dump;
    SqfCreate create;
    SqfWriter *writer;
    Arena arena;
    SchemaText *row;
    u32 rows, capacity, trees;
    u64 expected; /* Rows and entries, about. */
    u64 written;
    /* The tree at hand. */
    const TableDef *table;
    const char *name;
    Layout layout;
    BulkShape shape;   /* Of an index, or of a WITHOUT ROWID table's key. */
    u16 *key_position; /* Of such a table: key column i is column key_position[i]. */
    Sort *sort;        /* Entries that have another order in the file, else NULL. */
    Arena text;
    Cell *value, *key_cell;
    Buf record, key;
} Export;

static Err
session_failed(Export *export, Err err)
{
    return err_set(export->msg, err, "%s", err_message(session_error(export->session)));
}

/* ---- what is there ---- */

static const char *
text_keep(Export *export, const Cell *cell)
{
    return arena_strndup(&export->arena, cell->u.p, cell->bytes);
}

static Err
schema_add(Export *export, const Cell *cell)
{
    if (export->rows == export->capacity) {
        u32 capacity = export->capacity * 2 + 32;
        SchemaText *bigger = ARENA_NEW_ARRAY(&export->arena, SchemaText, capacity);
        if (bigger == NULL) return err_set(export->msg, ERR_NOMEM, NULL);
        if (export->rows > 0) memcpy(bigger, export->row, export->rows * sizeof(*bigger));
        export->row = bigger;
        export->capacity = capacity;
    }
    SchemaText *row = &export->row[export->rows++];
    bool has_sql = cell[5].type == CELL_TEXT;
    *row = (SchemaText){
        .rowid = cell[0].u.i,
        .type = text_keep(export, &cell[1]),
        .name = text_keep(export, &cell[2]),
        .table = text_keep(export, &cell[3]),
        .sql = has_sql ? text_keep(export, &cell[5]) : NULL,
        .has_tree = cell[4].type == CELL_INT && cell[4].u.i != 0,
    };
    export->trees += row->has_tree;
    bool kept = row->type != NULL && row->name != NULL && row->table != NULL &&
                (!has_sql || row->sql != NULL);
    return kept ? OK : err_set(export->msg, ERR_NOMEM, NULL);
}

static Err
schema_read(Export *export)
{
    static const char sql[] = "SELECT rowid, type, name, tbl_name, rootpage, sql "
                              "FROM main.sqlite_schema ORDER BY rowid";
    Stmt *stmt = NULL;
    bool row = false;
    Err err = stmt_prepare(export->session, SLICE_LITERAL(sql), &stmt, NULL);
    if (err != OK) return session_failed(export, err);
    for (;;) {
        err = stmt_step(stmt, &row);
        if (err != OK) err = session_failed(export, err);
        if (err != OK || !row) break;
        err = schema_add(export, stmt_row(stmt));
        if (err != OK) break;
    }
    Err end = stmt_finalize(stmt);
    (void)end; /* The same error once more. */
    return err;
}

static Err
numbers_read(Export *export)
{
    const TransferExport *options = export->options;
    SqfCreate *create = &export->create;
    i64 user = 0, application = 0, version = 0, page_bytes = 0, encoding = 0, vacuum = 0;
    BulkDump *dump = export->dump;
    Err err = bulk_dump_number(dump, "user_version", &user);
    if (err == OK) err = bulk_dump_number(dump, "application_id", &application);
    if (err == OK) err = bulk_dump_number(dump, "schema_version", &version);
    if (err == OK) err = bulk_dump_number(dump, TRANSFER_PAGE_BYTES, &page_bytes);
    if (err == OK) err = bulk_dump_number(dump, TRANSFER_ENCODING, &encoding);
    if (err == OK) err = bulk_dump_number(dump, TRANSFER_VACUUM, &vacuum);
    if (err != OK) return session_failed(export, err);
    *create = (SqfCreate){
        .page_bytes = options->page_bytes != 0 ? options->page_bytes : (u32)page_bytes,
        .encoding = options->encoding != 0 ? options->encoding : (u32)encoding,
        .vacuum = options->vacuum != TRANSFER_AS_IMPORTED ? options->vacuum : (u32)vacuum,
        .wal = options->wal,
        .user_version = (i32)user,
        .application_id = (i32)application,
        .schema_cookie = (u32)version,
    };
    if (create->encoding == 0) create->encoding = SQF_UTF8;
    return OK;
}

/* ---- trees ---- */

static void
count_row(Export *export)
{
    if (++export->written % PROGRESS_ROWS != 0 || export->options->progress == NULL) return;
    export->options->progress(export->options->arg, export->name, export->written,
                              MAX_OF(export->expected, export->written));
}

static Err
record_make(Export *export, const Cell *cell, u32 count, const bool *compact)
{
    buf_clear(&export->record);
    Err err = sqf_record_encode(cell, count, compact, export->create.encoding, &export->record);
    if (err == OK) return OK;
    return err_set(export->msg, err, "%s: %s", export->name,
                   err == ERR_TOOBIG ? "a row is too big for a SQLite file" : err_text(err));
}

/* BINARY compares the bytes of the text as the file encodes it, so in a UTF-16 file the order is
   another one. */
static bool
order_differs(const Export *export)
{
    if (export->create.encoding == SQF_UTF8) return false;
    for (u32 i = 0; i < export->shape.cells; i++) {
        const KeyColumn *column = &export->shape.column[i];
        if (column->collation == NULL || column->collation->kind == COLLATION_BINARY) return true;
    }
    return false;
}

/* The key by which the file's order is memcmp's. */
static Err
sort_key(Export *export, const Cell *cell, i64 rowid)
{
    Err err = OK;
    SqfEncoding encoding = export->create.encoding;
    buf_clear(&export->key);
    arena_reset(&export->text);
    for (u32 i = 0; err == OK && i < export->shape.cells; i++) {
        const KeyColumn *column = &export->shape.column[i];
        Cell as = cell[i];
        bool binary = column->collation == NULL || column->collation->kind == COLLATION_BINARY;
        if (as.type == CELL_TEXT && binary) {
            Buf text = {0};
            err = sqf_text_encode(SLICE(as.u.p, as.bytes), encoding, &text);
            if (err == OK) err = cell_text_copy(text.p, text.bytes, &export->text, &as);
            buf_free(&text);
        }
        if (err == OK) err = key_append_cell(&export->key, &as, column);
    }
    if (err == OK && !export->table->without_rowid) err = key_append_rowid(&export->key, rowid);
    return err == OK ? OK : err_set(export->msg, err, NULL);
}

static Err
entry_sorted(void *arg, Slice payload)
{
    Export *export = arg;
    return sqf_tree_entry(export->writer, payload, export->msg);
}

/* The record of an entry is made: write it, or put it aside to be sorted. */
static Err
entry_write(Export *export, const Cell *key_cell, i64 rowid)
{
    Slice payload = buf_slice(&export->record);
    count_row(export);
    if (export->sort == NULL) return sqf_tree_entry(export->writer, payload, export->msg);
    Err err = sort_key(export, key_cell, rowid);
    return err == OK ? sort_add(export->sort, buf_slice(&export->key), payload, export->msg) : err;
}

static Err
table_row(void *arg, const Cell *cell, i64 rowid)
{
    Export *export = arg;
    const Layout *layout = &export->layout;
    bool keyed = export->table->without_rowid;
    for (u32 i = 0; i < layout->count; i++) {
        u16 column = layout->column[i];
        bool in_key = !keyed && column == export->table->rowid_column;
        export->value[i] = in_key ? cell_null() : cell[column];
    }
    Err err = record_make(export, export->value, layout->count, layout->compact);
    if (err != OK) return err;
    export->counts->rows++;
    for (u32 i = 0; keyed && i < export->shape.cells; i++)
        export->key_cell[i] = cell[export->key_position[i]];
    if (keyed) return entry_write(export, export->key_cell, 0);
    count_row(export);
    return sqf_tree_row(export->writer, rowid, buf_slice(&export->record), export->msg);
}

static Err
index_entry(void *arg, const Cell *cell, i64 rowid)
{
    Export *export = arg;
    u32 count = export->shape.cells;
    if (export->sort == NULL && order_differs(export)) {
        Err err = sort_open(0, &export->sort);
        if (err != OK) return err_set(export->msg, err, NULL);
    }
    memcpy(export->value, cell, count * sizeof(*cell));
    if (!export->table->without_rowid) export->value[count++] = cell_int(rowid);
    Err err = record_make(export, export->value, count, NULL);
    return err == OK ? entry_write(export, cell, rowid) : err;
}

/* What is sorted comes out now. */
static Err
sort_end(Export *export, Err err)
{
    if (err == OK && export->sort != NULL)
        err = sort_drain(export->sort, entry_sorted, export, export->msg);
    sort_close(export->sort);
    export->sort = NULL;
    return err;
}

/* The key of a WITHOUT ROWID table, as order_differs() and sort_key() want it. */
static Err
key_shape(Export *export, const IndexDef *key)
{
    KeyColumn *column = ARENA_NEW_ARRAY(&export->arena, KeyColumn, key->key_columns);
    export->key_cell = ARENA_NEW_ARRAY(&export->arena, Cell, key->key_columns);
    export->key_position = ARENA_NEW_ARRAY(&export->arena, u16, key->key_columns);
    if (column == NULL || export->key_cell == NULL || export->key_position == NULL)
        return ERR_NOMEM;
    for (u32 i = 0; i < key->key_columns; i++) {
        column[i] = (KeyColumn){.collation = key->column[i].collation, .desc = key->column[i].desc};
        export->key_position[i] = key->column[i].column;
    }
    export->shape = (BulkShape){key->key_columns, column};
    return order_differs(export) ? sort_open(0, &export->sort) : OK;
}

static Err
table_write(Export *export, const TableDef *table)
{
    export->table = table;
    Err err = layout_make(table, &export->arena, &export->layout);
    export->value = ARENA_NEW_ARRAY(&export->arena, Cell, export->layout.count + 1);
    if (err == OK && export->value == NULL) err = ERR_NOMEM;
    if (err == OK && table->without_rowid) err = key_shape(export, table->primary_key);
    if (err != OK) return err_set(export->msg, err, NULL);
    err = sort_end(export, bulk_dump_table(export->dump, table, table_row, export));
    export->counts->tables += err == OK;
    return err == OK || export->msg->err != OK ? err : session_failed(export, err);
}

static Err
index_write(Export *export, const IndexDef *index)
{
    const TableDef *table = index->table;
    export->table = table;
    /* A SQLite file keeps it in that order, which only the program knows. */
    for (u32 i = 0; i < index->key_columns; i++) {
        if (index->column[i].host_collation == NULL) continue;
        return err_set(export->msg, ERR_UNSUPPORTED, "index %s: its collation %s is not built in",
                       index->name, index->column[i].host_collation);
    }
    u32 most = index->key_columns +
               (table->primary_key != NULL ? table->primary_key->key_columns : 0u);
    export->value = ARENA_NEW_ARRAY(&export->arena, Cell, most + 2);
    if (export->value == NULL) return err_set(export->msg, ERR_NOMEM, NULL);
    Err err = bulk_dump_index(export->dump, index, &export->shape, index_entry, export);
    err = sort_end(export, err);
    export->counts->indexes += err == OK;
    return err == OK || export->msg->err != OK ? err : session_failed(export, err);
}

static Err
tree_write(Export *export, const SchemaText *row, u32 tree)
{
    bool is_index = strcmp(row->type, "index") == 0;
    const IndexDef *index = is_index ? bulk_dump_find_index(export->dump, row->name) : NULL;
    const TableDef *table = is_index ? NULL : bulk_dump_find(export->dump, row->name);
    if (index == NULL && table == NULL)
        return err_set(export->msg, ERR_CORRUPT, "%s %s is not in the catalog", row->type,
                       row->name);
    bool keyed = is_index || table->without_rowid;
    ArenaMark mark = arena_mark(&export->arena);
    export->name = row->name;
    Err err = sqf_tree_begin(export->writer, tree, keyed, export->msg);
    if (err == OK) err = is_index ? index_write(export, index) : table_write(export, table);
    if (err == OK) err = sqf_tree_end(export->writer, export->msg);
    arena_rewind(&export->arena, mark);
    return err;
}

static Err
schema_write(Export *export)
{
    u32 tree = 0;
    Err err = sqf_tree_begin(export->writer, SQF_TREE_SCHEMA, false, export->msg);
    export->name = "sqlite_schema";
    for (u32 i = 0; err == OK && i < export->rows; i++) {
        const SchemaText *row = &export->row[i];
        u32 root = row->has_tree ? sqf_writer_root(export->writer, tree++) : 0;
        const Cell cell[5] = {
            cell_text(row->type, strlen(row->type)),
            cell_text(row->name, strlen(row->name)),
            cell_text(row->table, strlen(row->table)),
            cell_int(root),
            row->sql != NULL ? cell_text(row->sql, strlen(row->sql)) : cell_null(),
        };
        err = record_make(export, cell, 5, NULL);
        if (err == OK)
            err = sqf_tree_row(export->writer, row->rowid, buf_slice(&export->record), export->msg);
        export->counts->views += strcmp(row->type, "view") == 0;
        export->counts->triggers += strcmp(row->type, "trigger") == 0;
    }
    return err == OK ? sqf_tree_end(export->writer, export->msg) : err;
}

static void
expect(Export *export)
{
    for (u32 i = 0; i < export->rows; i++) {
        const SchemaText *row = &export->row[i];
        const IndexDef *index = bulk_dump_find_index(export->dump, row->name);
        const TableDef *table = bulk_dump_find(export->dump, row->name);
        if (row->has_tree && table != NULL)
            export->expected += store_estimate_rows(table->store, table->tree);
        else if (row->has_tree && index != NULL)
            export->expected += store_estimate_rows(index->table->store, index->tree);
    }
}

static Err
export_run(Export *export, const SqfTarget *target, u64 *bytes_out)
{
    Err err = bulk_dump_begin(export->session, &export->dump);
    if (err != OK) return session_failed(export, err);
    err = numbers_read(export);
    if (err == OK) err = schema_read(export);
    if (err != OK) return err;
    expect(export);
    err = sqf_writer_open(&export->create, target, export->trees, &export->writer, export->msg);
    u32 tree = 0;
    for (u32 i = 0; err == OK && i < export->rows; i++) {
        if (export->row[i].has_tree) err = tree_write(export, &export->row[i], tree++);
    }
    if (err == OK) err = schema_write(export);
    return err == OK ? sqf_writer_finish(export->writer, bytes_out, export->msg) : err;
}

Err
transfer_export(Session *session, const TransferExport *options, const SqfTarget *target,
                TransferCounts *counts_out, u64 *bytes_out, ErrMsg *msg)
{
    Export export = {.session = session, .options = options, .counts = counts_out, .msg = msg};
    *counts_out = (TransferCounts){0};
    *bytes_out = 0;
    arena_init(&export.arena, NULL);
    arena_init(&export.text, NULL);
    Err err = export_run(&export, target, bytes_out);
    sqf_writer_close(export.writer);
    bulk_dump_end(export.dump);
    buf_free(&export.record);
    buf_free(&export.key);
    arena_free(&export.text);
    arena_free(&export.arena);
    return err == OK || msg->err != OK ? err : err_set(msg, err, NULL);
}
