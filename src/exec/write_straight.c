/*
 * write_straight.c -- INSERT of one row of parameters and constants into a table without indexes:
 * from where they lie into the record, with no row of cells between.
 *
 * Whatever is not stored just as it is (an affinity to be applied, a NULL where none may be, a
 * rowid that is no integer, a clash) goes the longer way, before anything has happened.
 */
#include "exec/write__run.h"
#include "value/record.h"

#define STRAIGHT_COLUMNS_MAX 64u /* Pointers to cells stand on the stack. */

struct WriteStraight {
    i32 rowid;        /* Number of the value that gives it; -1: none does. */
    u32 count;        /* Columns of the record. */
    const i32 *value; /* [count] Number of the value; VALUE_NULL, VALUE_KEY. */
    const u8 *takes;  /* [count] Bit of a CellType: such a value is stored just as it is. */
};

#define VALUE_NULL (-1)
#define VALUE_KEY  (-2)

static const Cell null_cell = {.type = CELL_NULL};
static const Cell key_cell = {.type = CELL_NULL, .flags = CELL_FROM_KEY};

static bool
fits(const ExecWrite *w)
{
    const PlanWrite *plan = w->plan;
    const TableDef *table = w->table;
    if (!w->at_once || plan->kind != WRITE_INSERT || !w->value_simple) return false;
    if (table->stored_count > STRAIGHT_COLUMNS_MAX || table->stored_count != table->column_count) {
        return false;
    }
    for (u16 c = 0; w->default_expr != NULL && c < table->column_count; c++) {
        if (plan->value_cell[c] < 0 && w->default_expr[c] != NULL) return false;
    }
    return true;
}

static u8
types_taken(const ColumnDef *column)
{
    const Cell sample[] = {cell_int(1), cell_real(1.5), cell_text("", 0), {.type = CELL_BLOB}};
    u8 types = column->not_null ? 0 : 1;
    STATIC_ASSERT(CELL_NULL == 0);
    for (u32 i = 0; i < COUNT_OF(sample); i++) {
        bool takes = write__stores_as_is(column->affinity, &sample[i]);
        if (takes) types = (u8)(types | 1u << sample[i].type);
    }
    return types;
}

Err
write__straight_open(ExecWrite *w)
{
    const TableDef *table = w->table;
    w->straight = NULL;
    if (!fits(w)) return OK;
    Arena *arena = &w->exec->arena;
    u32 count = table->stored_count;
    WriteStraight *straight = ARENA_NEW(arena, WriteStraight);
    i32 *value = ARENA_NEW_ARRAY(arena, i32, count + 1u);
    u8 *takes = ARENA_NEW_ARRAY(arena, u8, count + 1u);
    if (straight == NULL || value == NULL || takes == NULL) {
        return exec__fail(w->exec, ERR_NOMEM, NULL);
    }
    *straight = (WriteStraight){.rowid = w->plan->value_cell[table->column_count],
                                .count = count,
                                .value = value,
                                .takes = takes};
    for (u32 i = 0; i < count; i++) {
        u16 c = w->codec.stored_column[i];
        value[i] = MAX_OF(w->plan->value_cell[c], VALUE_NULL);
        takes[i] = types_taken(&table->column[c]);
        if (c != table->rowid_column) continue;
        if (straight->rowid < 0) straight->rowid = value[i];
        value[i] = VALUE_KEY;
        takes[i] = 1; /* NULL */
    }
    w->straight = straight;
    return OK;
}

static ALWAYS_INLINE const Cell *
value_at(const ExecWrite *w, i32 at)
{
    if (UNLIKELY(at < 0)) return at == VALUE_KEY ? &key_cell : &null_cell;
    const WriteValue *value = &w->value[at];
    return value->kind == WRITE_VALUE_PARAM ? &w->exec->param[value->param] : &value->constant;
}

/* Nothing that only the longer ways know: a subtype, a pointer, a zero with a sign. */
static ALWAYS_INLINE bool
is_common(const Cell *cell)
{
    if ((cell->flags & CELL_POINTER) != 0 || cell->subtype != 0) return false;
    return cell->type != CELL_REAL || cell->u.i != I64_MIN;
}

/* The record into w->fresh.record; *done_out false: something is not stored as it is. */
static Err
encode(ExecWrite *w, bool *done_out)
{
    const WriteStraight *straight = w->straight;
    const Cell *cell[STRAIGHT_COLUMNS_MAX];
    *done_out = false;
    for (u32 i = 0; i < straight->count; i++) {
        cell[i] = value_at(w, straight->value[i]);
        bool takes = (straight->takes[i] >> cell[i]->type & 1) != 0;
        if (UNLIKELY(!takes || !is_common(cell[i]))) return OK;
    }
    Buf *record = &w->fresh.record;
    buf_clear(record);
    bool narrow;
    Err err = record_encode_from(cell, straight->count, record, &narrow);
    if (err != OK) return exec__fail(w->exec, err, NULL);
    u64 length_max = w->exec->env->length_max;
    *done_out = narrow && (length_max == 0 || record->bytes <= length_max);
    return OK;
}

Err
write__straight_put(ExecWrite *w, bool *done_out)
{
    *done_out = false;
    Cell rowid = *value_at(w, w->straight->rowid);
    bool given = rowid.type == CELL_INT && (rowid.flags & CELL_POINTER) == 0;
    if (!given && w->straight->rowid >= 0 && rowid.type != CELL_NULL) return OK;
    bool encoded;
    Err err = encode(w, &encoded);
    if (err != OK || !encoded) return err;
    w->fresh.cell[w->table->column_count] = given ? rowid : cell_null();
    w->rowid_given = given;
    err = write__new_rowid(w);
    if (err != OK) return err;
    u8 key[TABLE_KEY_BYTES];
    table_key_put(w->fresh.rowid, key);
    StoreVerdict verdict;
    err = store_put(w->txn, w->table->tree, SLICE(key, sizeof(key)), buf_slice(&w->fresh.record),
                    STORE_PUT_INSERT, &verdict);
    if (err != OK) return exec__fail_store(w->exec, err, w->txn);
    *done_out = verdict == STORE_DONE;
    return OK;
}
