/*
 * make_schema.h -- tables and indexes made by hand, and random cells, for the tests of exec/.
 */
#pragma once

#include "sql/schema.h"
#include "unit/cmocka_all.h"
#include "value/collate.h"
#include "value/value.h"

typedef struct MakeColumn {
    const char *name;
    u8 affinity;
    u8 generated; /* 0, 1 virtual, 2 stored */
    bool not_null;
    u8 strict_type;
    const Collation *collation;
} MakeColumn;

static inline TableDef *
make_table(Arena *arena, const char *name, const MakeColumn *column, u16 count)
{
    TableDef *table = ARENA_NEW(arena, TableDef);
    table->name = name;
    table->schema = "main";
    table->column_count = count;
    table->column = ARENA_NEW_ARRAY(arena, ColumnDef, count);
    table->rowid_column = COLUMN_ROWID;
    for (u16 i = 0; i < count; i++) {
        table->column[i] = (ColumnDef){
            .name = column[i].name,
            .affinity = column[i].affinity,
            .generated = column[i].generated,
            .not_null = column[i].not_null,
            .strict_type = column[i].strict_type,
            .collation = column[i].collation != NULL ? column[i].collation : &collation_binary,
            .stored_index = table->stored_count,
        };
        if (column[i].strict_type != 0) table->strict = true;
        if (column[i].generated != 1) table->stored_count++;
    }
    return table;
}

typedef struct MakeKey {
    u16 column;
    bool desc;
    const Collation *collation;
} MakeKey;

static inline IndexDef *
make_index(Arena *arena, TableDef *table, const char *name, bool unique, const MakeKey *key,
           u16 count)
{
    IndexDef *index = ARENA_NEW(arena, IndexDef);
    index->name = name;
    index->table = table;
    index->unique = unique;
    index->origin = unique ? INDEX_UNIQUE : INDEX_CREATED;
    index->key_columns = count;
    index->column = ARENA_NEW_ARRAY(arena, IndexColumn, count);
    for (u16 i = 0; i < count; i++) {
        index->column[i] = (IndexColumn){
            .column = key[i].column,
            .desc = key[i].desc,
            .collation = key[i].collation != NULL ? key[i].collation : &collation_binary,
        };
    }
    return index;
}

/* Make the table WITHOUT ROWID with that key. */
static inline void
make_primary(Arena *arena, TableDef *table, const MakeKey *key, u16 count)
{
    table->without_rowid = true;
    table->primary_key = make_index(arena, table, "pk", true, key, count);
    table->primary_key->origin = INDEX_PRIMARY_KEY;
    for (u16 i = 0; i < count; i++) {
        table->column[key[i].column].primary_key = true;
        table->column[key[i].column].not_null = true;
    }
}

/* A value of any type from a small set, so that equal ones are common; sometimes extreme, and with
   `longs` sometimes far longer than a key keeps. */
static inline Cell
random_cell(Rng *rng, Arena *arena, bool longs)
{
    static const f64 reals[] = {0.0,
                                -0.0,
                                0.5,
                                -0.5,
                                1.0,
                                1.5,
                                2.0,
                                -300.0,
                                9007199254740992.0,
                                1e300,
                                -1e300,
                                5e-324,
                                9223372036854775808.0};
    static const i64 ints[] = {
        0, 1, 2, -1, 127, 128, -300, 1000, 9007199254740992, 9007199254740993, I64_MAX, I64_MIN};
    static const char *const texts[] = {"", "a", "A", "ab", "AB ", "Ab", "b ", "b", "a\x01", "~"};
    switch (rng_below(rng, longs ? 9 : 8)) {
    case 0: return cell_null();
    case 1: return cell_int((i64)rng_below(rng, 5));
    case 2: return cell_int(ints[rng_below(rng, COUNT_OF(ints))]);
    case 3: return cell_real(reals[rng_below(rng, COUNT_OF(reals))]);
    case 4:
    case 5: {
        const char *text = texts[rng_below(rng, COUNT_OF(texts))];
        return cell_text(text, strlen(text));
    }
    case 6: return cell_text("a\0b", rng_below(rng, 4));
    case 7: return cell_blob("\0\1\2\377", rng_below(rng, 5));
    default: {
        /* Long ones share their first bytes. */
        size_t bytes = 940 + rng_below(rng, 60);
        char *p = arena_bytes(arena, bytes);
        memset(p, rng_below(rng, 2) != 0 ? 'x' : 'X', bytes);
        p[bytes - 1] = (char)('a' + (char)rng_below(rng, 3));
        if (rng_below(rng, 4) == 0) return cell_blob(p, bytes);
        return cell_text(p, bytes);
    }
    }
}
