/*
 * index_build.c -- entries for all rows of a table at once.
 *
 * Sorted insertion fills pages in order and shows duplicates as neighbours; duplicates in different
 * portions meet in the store.
 */
#include "exec/index_build.h"

#include "exec/table_codec.h"
#include "rt/task.h"

#define PORTION_BYTES ((u64)64 << 20)
#define TURN_ROWS     64u /* Between two looks whether others wait, or this is to stop. */

typedef struct BuildEntry {
    const u8 *bytes; /* Key, then value. */
    u32 key_bytes;
    u32 value_bytes;
    bool claims;
} BuildEntry;

/* What turns rows of the run into entries. */
typedef struct EntryMaker {
    IndexCodec codec;
    Cell *cell;        /* [codec.columns] */
    u16 *primary_from; /* By appended cell: which primary-key column it is. */
    Buf key, value;
    bool claims;
    i64 rowid;
} EntryMaker;

static Err
maker_open(EntryMaker *maker, const IndexDef *index, Arena *arena, ErrMsg *msg)
{
    *maker = (EntryMaker){0};
    Err err = index_codec_init(&maker->codec, index, arena);
    if (err == ERR_UNSUPPORTED) {
        return err_set(msg, err,
                       "index %s uses a collation of the host program, which is not supported",
                       index->name);
    }
    if (err != OK) return err_set(msg, err, NULL);
    maker->cell = ARENA_NEW_ARRAY(arena, Cell, maker->codec.columns);
    maker->primary_from = ARENA_NEW_ARRAY(arena, u16, maker->codec.columns);
    if (maker->cell == NULL || maker->primary_from == NULL) return err_set(msg, ERR_NOMEM, NULL);
    for (u16 i = 0; i < maker->codec.primary_count; i++) {
        maker->primary_from[maker->codec.primary_position[i]] = i;
    }
    return OK;
}

static void
maker_close(EntryMaker *maker)
{
    buf_free(&maker->key);
    buf_free(&maker->value);
}

/* The entry of one row of the run into maker->key and value. */
static Err
maker_encode(EntryMaker *maker, const Cell *row)
{
    const IndexCodec *codec = &maker->codec;
    memcpy(maker->cell, row, sizeof(Cell) * codec->key_columns);
    for (u16 i = codec->key_columns; i < codec->columns; i++) {
        maker->cell[i] = row[codec->key_columns + maker->primary_from[i]];
    }
    maker->rowid = codec->table->without_rowid ? 0 : row[codec->key_columns].u.i;
    return index_encode(codec, maker->cell, maker->rowid, &maker->key, &maker->value,
                        &maker->claims);
}

static Err
fail_duplicate(const IndexDef *index, ErrMsg *msg)
{
    Buf names = {0};
    Err err = OK;
    for (u16 i = 0; i < index->key_columns && err == OK; i++) {
        if (index->column[i].column >= index->table->column_count) {
            buf_clear(&names);
            err = buf_printf(&names, "index '%s'", index->name);
            break;
        }
        err = buf_printf(&names, "%s%s.%s", i == 0 ? "" : ", ", index->table->name,
                         index->table->column[index->column[i].column].name);
    }
    if (err == OK) {
        err = err_set(msg, ERR_CONSTRAINT_UNIQUE, "UNIQUE constraint failed: %.*s",
                      (int)names.bytes, (const char *)names.p);
    } else {
        err = err_set(msg, err, NULL);
    }
    buf_free(&names);
    return err;
}

static Err
fail_store(const StoreTxn *txn, Err err, ErrMsg *msg)
{
    const ErrMsg *from = store_txn_error(txn);
    return err_set(msg, err, "%s", from != NULL ? err_message(from) : err_text(err));
}

static Err
fail_run(const Exec *exec, Err err, ErrMsg *msg)
{
    return err_set(msg, err, "%s", err_message(exec_error(exec)));
}

/* ---- building ---- */

typedef struct Portion {
    BuildEntry *entry;
    size_t count, capacity;
    Arena bytes;
    u64 bytes_held;
} Portion;

static int
compare_entries(const void *a, const void *b)
{
    const BuildEntry *x = a, *y = b;
    rt_give_turn(); /* Who is to stop does so when it puts rows. */
    return slice_compare(SLICE(x->bytes, x->key_bytes), SLICE(y->bytes, y->key_bytes));
}

static Err
portion_add(Portion *portion, const EntryMaker *maker)
{
    if (portion->count == portion->capacity) {
        size_t capacity = MAX_OF(portion->capacity * 2, (size_t)256);
        BuildEntry *entry = mem_realloc(portion->entry, capacity * sizeof(BuildEntry));
        if (entry == NULL) return ERR_NOMEM;
        portion->entry = entry;
        portion->capacity = capacity;
    }
    size_t bytes = maker->key.bytes + maker->value.bytes;
    u8 *p = arena_bytes(&portion->bytes, MAX_OF(bytes, (size_t)1));
    if (p == NULL) return ERR_NOMEM;
    memcpy(p, maker->key.p, maker->key.bytes);
    if (maker->value.bytes > 0) memcpy(p + maker->key.bytes, maker->value.p, maker->value.bytes);
    portion->entry[portion->count++] = (BuildEntry){
        .bytes = p,
        .key_bytes = (u32)maker->key.bytes,
        .value_bytes = (u32)maker->value.bytes,
        .claims = maker->claims,
    };
    portion->bytes_held += bytes + sizeof(BuildEntry);
    return OK;
}

/* Put the portion into the tree, in order, and empty it. */
static Err
portion_flush(Portion *portion, const IndexDef *index, StoreTxn *txn, ErrMsg *msg)
{
    if (portion->count > 1) {
        sort_items(portion->entry, portion->count, sizeof(BuildEntry), compare_entries);
    }
    for (size_t i = 0; i < portion->count; i++) {
        const BuildEntry *entry = &portion->entry[i];
        StoreVerdict verdict;
        Err err = i % TURN_ROWS == 0 ? rt_check() : OK;
        if (err != OK) return err_set(msg, err, NULL);
        err = store_put(txn, index->tree, SLICE(entry->bytes, entry->key_bytes),
                        SLICE(entry->bytes + entry->key_bytes, entry->value_bytes),
                        STORE_PUT_INSERT, &verdict);
        if (err != OK) return fail_store(txn, err, msg);
        if (verdict != STORE_DONE) {
            if (entry->claims) return fail_duplicate(index, msg);
            return err_set(msg, ERR_CORRUPT, "index %s was not empty", index->name);
        }
    }
    portion->count = 0;
    portion->bytes_held = 0;
    arena_reset(&portion->bytes);
    return OK;
}

static Err
build_from(Exec *exec, const IndexDef *index, const ExecEnv *env, StoreTxn *txn, ErrMsg *msg)
{
    Arena arena;
    EntryMaker maker;
    Portion portion = {0};
    bool row = false;
    u64 portion_bytes = env->memory_budget_bytes != 0 ? env->memory_budget_bytes : PORTION_BYTES;
    arena_init(&arena, env->account);
    arena_init(&portion.bytes, env->account);
    Err err = maker_open(&maker, index, &arena, msg);
    if (err != OK) goto done;
    for (;;) {
        err = exec_step(exec, &row);
        if (err != OK) {
            err = fail_run(exec, err, msg);
            goto done;
        }
        if (!row) break;
        err = maker_encode(&maker, exec_row(exec));
        if (err == OK) err = portion_add(&portion, &maker);
        if (err != OK) {
            err = err_set(msg, err, NULL);
            goto done;
        }
        if (portion.bytes_held >= portion_bytes) {
            err = portion_flush(&portion, index, txn, msg);
            if (err != OK) goto done;
        }
    }
    err = portion_flush(&portion, index, txn, msg);

done:
    maker_close(&maker);
    mem_free(portion.entry);
    arena_free(&portion.bytes);
    arena_free(&arena);
    return err;
}

/* Open and start the run of `plan`; closed with exec_close(). */
static Err
open_run(const Plan *plan, const ExecEnv *env, StoreTxn *const *txn_by_database, Exec **exec_out,
         ErrMsg *msg)
{
    Err err = exec_open(plan, env, exec_out, msg);
    if (err != OK) return err;
    err = exec_start(*exec_out, txn_by_database, NULL, 0);
    return err == OK ? OK : fail_run(*exec_out, err, msg);
}

Err
exec_index_build(const Plan *plan, const IndexDef *index, const ExecEnv *env,
                 StoreTxn *const *txn_by_database, ErrMsg *msg)
{
    Exec *exec = NULL;
    Err err = open_run(plan, env, txn_by_database, &exec, msg);
    if (err == OK) err = build_from(exec, index, env, txn_by_database[index->table->database], msg);
    exec_close(exec);
    return err;
}

static Err
build_loose(Exec *exec, const IndexDef *index, EntryMaker *maker, StoreTxn *txn,
            ExecDuplicate duplicate, void *arg, ErrMsg *msg)
{
    for (;;) {
        bool row = false;
        StoreVerdict verdict;
        Err err = exec_step(exec, &row);
        if (err != OK) return fail_run(exec, err, msg);
        if (!row) return OK;
        err = maker_encode(maker, exec_row(exec));
        if (err != OK) return err_set(msg, err, NULL);
        err = store_put(txn, index->tree, buf_slice(&maker->key), buf_slice(&maker->value),
                        STORE_PUT_INSERT, &verdict);
        if (err != OK) return fail_store(txn, err, msg);
        if (verdict == STORE_DONE) continue;
        err = duplicate(arg, exec_row(exec) + index->key_columns);
        if (err != OK) return fail_store(txn, err, msg);
    }
}

Err
exec_index_build_loose(const Plan *plan, const IndexDef *index, const ExecEnv *env,
                       StoreTxn *const *txn_by_database, ExecDuplicate duplicate, void *arg,
                       ErrMsg *msg)
{
    Exec *exec = NULL;
    Arena arena;
    EntryMaker maker;
    arena_init(&arena, env->account);
    Err err = maker_open(&maker, index, &arena, msg);
    if (err == OK) err = open_run(plan, env, txn_by_database, &exec, msg);
    if (err == OK) {
        err = build_loose(exec, index, &maker, txn_by_database[index->table->database], duplicate,
                          arg, msg);
    }
    exec_close(exec);
    maker_close(&maker);
    arena_free(&arena);
    return err;
}

/* ---- checking ---- */

typedef struct Findings {
    u32 *left;
    ExecFinding report;
    void *arg;
    Buf text;
} Findings;

/* Hand on the text in findings->text (NUL-terminated here). */
static Err
finding_report(Findings *findings, Err err)
{
    if (err == OK) err = buf_append_byte(&findings->text, 0);
    if (err == OK && *findings->left > 0) {
        (*findings->left)--;
        findings->report(findings->arg, (const char *)findings->text.p);
    }
    buf_clear(&findings->text);
    return err;
}

static Err
check_entry(const EntryMaker *maker, StoreTxn *txn, u64 row_no, Findings *findings, Err *store_err)
{
    const IndexDef *index = maker->codec.index;
    bool found;
    Slice value;
    *store_err = store_get(txn, index->tree, buf_slice(&maker->key), &found, &value);
    if (*store_err != OK) return OK;
    if (!found) {
        return finding_report(findings,
                              buf_printf(&findings->text, "row %llu missing from index %s",
                                         (unsigned long long)row_no, index->name));
    }
    if (slice_equal(value, buf_slice(&maker->value))) return OK;
    if (maker->claims) {
        return finding_report(
            findings, buf_printf(&findings->text, "non-unique entry in index %s", index->name));
    }
    return finding_report(findings,
                          buf_printf(&findings->text, "row %llu values differ from index %s",
                                     (unsigned long long)row_no, index->name));
}

static Err
check_from(Exec *exec, const IndexDef *index, StoreTxn *txn, Findings *findings, ErrMsg *msg)
{
    Arena arena;
    EntryMaker maker;
    u64 rows = 0, entries = 0;
    Err store_err = OK;
    arena_init(&arena, NULL);
    Err err = maker_open(&maker, index, &arena, msg);
    if (err != OK) goto done;
    for (;;) {
        bool row;
        err = exec_step(exec, &row);
        if (err != OK) {
            err = fail_run(exec, err, msg);
            goto done;
        }
        if (!row) break;
        rows++;
        err = maker_encode(&maker, exec_row(exec));
        if (err == OK) err = check_entry(&maker, txn, rows, findings, &store_err);
        if (err != OK) err = err_set(msg, err, NULL);
        if (store_err != OK) err = fail_store(txn, store_err, msg);
        if (err != OK || *findings->left == 0) goto done;
    }
    err = store_count(txn, index->tree, &entries);
    if (err != OK) {
        err = fail_store(txn, err, msg);
    } else if (entries != rows) {
        err = finding_report(
            findings, buf_printf(&findings->text, "wrong # of entries in index %s", index->name));
        if (err != OK) err = err_set(msg, err, NULL);
    }

done:
    maker_close(&maker);
    arena_free(&arena);
    return err;
}

Err
exec_index_check(const Plan *plan, const IndexDef *index, const ExecEnv *env,
                 StoreTxn *const *txn_by_database, u32 *findings_left, ExecFinding report,
                 void *arg, ErrMsg *msg)
{
    Findings findings = {.left = findings_left, .report = report, .arg = arg};
    Exec *exec = NULL;
    Err err = open_run(plan, env, txn_by_database, &exec, msg);
    if (err == OK) {
        err = check_from(exec, index, txn_by_database[index->table->database], &findings, msg);
    }
    exec_close(exec);
    buf_free(&findings.text);
    return err;
}

static Err
check_row(const TableCodec *codec, Slice key, Slice record, u64 row_no, Arena *arena, Cell *row,
          Findings *findings)
{
    const TableDef *table = codec->table;
    Err err = table_decode_all(codec, key, record, arena, row);
    if (err == ERR_CORRUPT) {
        return finding_report(findings,
                              buf_printf(&findings->text, "row %llu of table %s is damaged",
                                         (unsigned long long)row_no, table->name));
    }
    for (u16 c = 0; err == OK && c < table->column_count; c++) {
        const ColumnDef *column = &table->column[c];
        if (!column->not_null || column->generated == 1 || row[c].type != CELL_NULL) continue;
        err = finding_report(findings, buf_printf(&findings->text, "NULL value in %s.%s",
                                                  table->name, column->name));
    }
    return err;
}

Err
exec_table_check(const TableDef *table, StoreTxn *txn, u32 *findings_left, ExecFinding report,
                 void *arg, ErrMsg *msg)
{
    Arena arena, row_arena;
    TableCodec codec;
    StoreCursor *cursor = NULL;
    Findings findings = {.left = findings_left, .report = report, .arg = arg};
    arena_init(&arena, NULL);
    arena_init(&row_arena, NULL);
    Cell *row = ARENA_NEW_ARRAY(&arena, Cell, table->column_count + 1u);
    Err err = row == NULL ? ERR_NOMEM : table_codec_init(&codec, table, &arena);
    if (err != OK) {
        err = err_set(msg, err, NULL);
        goto done;
    }
    bool found;
    err = store_cursor_open(txn, table->tree, &cursor);
    if (err == OK) err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    for (u64 row_no = 1; err == OK && found && *findings_left > 0; row_no++) {
        arena_reset(&row_arena);
        Err bad = check_row(&codec, store_cursor_key(cursor), store_cursor_value(cursor), row_no,
                            &row_arena, row, &findings);
        if (bad != OK) {
            err = err_set(msg, bad, NULL);
            goto done;
        }
        err = row_no % TURN_ROWS == 0 ? rt_check() : OK;
        if (err != OK) {
            err = err_set(msg, err, NULL);
            goto done;
        }
        err = store_cursor_next(cursor, &found);
    }
    if (err != OK) err = fail_store(txn, err, msg);

done:
    store_cursor_close(cursor);
    buf_free(&findings.text);
    arena_free(&row_arena);
    arena_free(&arena);
    return err;
}
