/*
 * statistics.c -- what ANALYZE found out: the rows of sqlite_stat1 become numbers of the tables and
 * indexes that a catalog holds.
 *
 * They are read with the catalog and never later, so that all plans of one catalog weigh by the
 * same numbers.  Rows that make no sense say nothing; nobody is told.
 */
#include "sql/catalog/catalog_unit.h"
#include "value/record.h"

#define STAT_TABLE "sqlite_stat1"

/* The numbers at the start of the text; behind them stand words. */
static const char *
take_numbers(const char *at, f64 *number, u32 count, u32 *count_out)
{
    u32 found = 0;
    while (found < count && *at >= '0' && *at <= '9') {
        f64 value = 0;
        for (; *at >= '0' && *at <= '9'; at++)
            value = value * 10 + (*at - '0');
        number[found++] = value;
        if (*at == ' ') at++;
    }
    *count_out = found;
    return at;
}

static bool
starts_with(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* "unordered", "sz=N": the order is of no use; bytes of a row. */
static void
take_words(const char *at, bool *unordered_out, u32 *row_bytes_out)
{
    while (*at != 0) {
        if (starts_with(at, "unordered")) *unordered_out = true;
        if (starts_with(at, "sz=") && at[3] >= '0' && at[3] <= '9') {
            u32 bytes = 0;
            for (at += 3; *at >= '0' && *at <= '9' && bytes < 100000000; at++)
                bytes = bytes * 10 + (u32)(*at - '0');
            *row_bytes_out = MAX_OF(bytes, 2u);
        }
        while (*at != 0 && *at != ' ')
            at++;
        while (*at == ' ')
            at++;
    }
}

static Err
set_index(CatalogUnit *unit, IndexDef *index, const char *stat)
{
    u32 wanted = index->key_columns + 1u, found;
    f64 *number = ARENA_NEW_ARRAY(&unit->arena, f64, wanted);
    if (number == NULL) return ERR_NOMEM;
    const char *words = take_numbers(stat, number, wanted, &found);
    if (found == 0) return OK;
    /* Prefixes that are not spoken of share as many rows as the last one that is. */
    for (u32 i = MAX_OF(found, 1u); i < wanted; i++)
        number[i] = MIN_OF(number[i - 1], 1.0);
    index->stat = number;
    take_words(words, &index->stat_unordered, &index->stat_row_bytes);
    if (index->where_sql != NULL) return OK;
    unit->table->has_stat = true;
    unit->table->stat_rows = number[0];
    return OK;
}

static void
set_table(TableDef *table, const char *stat)
{
    u32 found;
    f64 rows;
    bool unordered = false;
    const char *words = take_numbers(stat, &rows, 1, &found);
    if (found == 0) return;
    table->has_stat = true;
    table->stat_rows = rows;
    take_words(words, &unordered, &table->stat_row_bytes);
}

static IndexDef *
index_of(const TableDef *table, const char *name)
{
    if (table->primary_key != NULL && text_compare_nocase(table->name, name) == 0)
        return table->primary_key;
    for (u32 i = 0; i < table->index_count; i++) {
        if (text_compare_nocase(table->index[i]->name, name) == 0) return table->index[i];
    }
    return NULL;
}

static Err
stat_text(Arena *arena, const Cell *cell, const char **text_out)
{
    *text_out = NULL;
    if (cell->type == CELL_NULL) return OK;
    Slice text;
    Err err = cell_text_bytes(cell, arena, &text);
    if (err == OK) *text_out = arena_strndup(arena, text.p, text.bytes);
    return err != OK || *text_out != NULL ? err : ERR_NOMEM;
}

/* One row: tbl, idx, stat. */
static Err
take_row(const Catalog *catalog, Arena *arena, Slice value)
{
    Cell cell[3] = {0};
    Record record;
    const char *table_name, *index_name, *stat;
    Err err = record_open(value, &record);
    if (err == OK) err = record_columns(&record, 3, cell, NULL);
    if (err == OK) err = stat_text(arena, &cell[0], &table_name);
    if (err == OK) err = stat_text(arena, &cell[1], &index_name);
    if (err == OK) err = stat_text(arena, &cell[2], &stat);
    if (err != OK || table_name == NULL || stat == NULL) return err;
    Slice name = SLICE(table_name, strlen(table_name));
    CatalogUnit *unit = catalog__unit_of(catalog, name);
    if (unit == NULL || unit->table == NULL || unit->table->is_view) return OK;
    IndexDef *index = index_name == NULL ? NULL : index_of(unit->table, index_name);
    if (index != NULL) return set_index(unit, index, stat);
    /* Of the table itself; SQLite takes an index that is gone for it too. */
    set_table(unit->table, stat);
    return OK;
}

Err
catalog__statistics_load(StoreTxn *txn, const Catalog *catalog)
{
    const TableDef *stat = catalog_find_table(catalog, SLICE_LITERAL(STAT_TABLE));
    if (stat == NULL || stat->is_view || stat->without_rowid || stat->column_count < 3) return OK;
    StoreCursor *cursor = NULL;
    Arena arena;
    bool found;
    Err err = store_cursor_open(txn, stat->tree, &cursor);
    if (err != OK) return err;
    arena_init(&arena, NULL);
    err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    while (err == OK && found) {
        err = take_row(catalog, &arena, store_cursor_value(cursor));
        arena_reset(&arena);
        if (err == OK) err = store_cursor_next(cursor, &found);
    }
    arena_free(&arena);
    store_cursor_close(cursor);
    return err;
}

Err
catalog__statistics_keep(const CatalogUnit *before, CatalogUnit *unit)
{
    if (before == NULL || unit == NULL || before->table == NULL || unit->table == NULL) return OK;
    const TableDef *old = before->table;
    TableDef *table = unit->table;
    table->has_stat = old->has_stat;
    table->stat_rows = old->stat_rows;
    table->stat_row_bytes = old->stat_row_bytes;
    for (u32 i = 0; i <= table->index_count; i++) {
        bool key = i == table->index_count;
        IndexDef *index = key ? table->primary_key : table->index[i];
        if (index == NULL) continue;
        const IndexDef *former = key ? old->primary_key : index_of(old, index->name);
        if (former == NULL || former->stat == NULL || former->key_columns != index->key_columns)
            continue;
        u32 count = index->key_columns + 1u;
        index->stat = ARENA_NEW_ARRAY(&unit->arena, f64, count);
        if (index->stat == NULL) return ERR_NOMEM;
        memcpy(index->stat, former->stat, count * sizeof(f64));
        index->stat_unordered = former->stat_unordered;
        index->stat_row_bytes = former->stat_row_bytes;
    }
    return OK;
}
