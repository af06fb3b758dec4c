/*
 * node_hash_join.c -- PLAN_HASH_JOIN: the right side goes into memory, the left side probes.
 *
 * Output keeps the order of the probe side and, for one probe row, the order in which the build
 * rows came.  RIGHT and FULL then give the unmatched build rows in that same order.  Without key
 * columns every build row is a candidate.
 *
 * Keys of larger probe batches are looked up by value in the tuple map, where that is exact
 * (tuple_map.h); everything else goes through key bytes.
 *
 * The build side is kept over rewinds as long as it would come out the same (watch.h).  Beyond the
 * memory budget it goes to a file (join_file.h); a candidate is then a place among the rows of the
 * probe row's key.
 */
#include "exec/exec__write.h"
#include "exec/join_file.h"
#include "exec/keyset.h"
#include "exec/node.h"
#include "exec/rowbuf.h"
#include "exec/tuple_map.h"
#include "exec/vexpr.h"
#include "exec/watch.h"
#include "value/collate.h"

#define BY_BATCH_MIN 16u
#define ROW_NONE     U32_MAX
#define PROBE_KEPT   ((u16)0xFFFF) /* The probe row kept over a trip. */

typedef struct HashJoin {
    ExecNode node;
    ExecProgram **probe_key, **build_key, *condition;
    u32 key_count, probe_columns, build_columns;
    KeyMaker maker;
    KeySet keys;
    TupleMap map;     /* Plain keys, rows of key_cells. */
    RowBuf key_cells; /* Row i: the cells of key i. */
    bool all_plain;   /* Every key is in the map. */
    VExpr **vprobe;   /* NULL: some probe key is not total. */
    Vec *probe_vec;
    u32 *probe_hash;
    bool probe_hashed; /* For the probe batch at hand. */
    u32 *head, *tail;  /* By key: first and last build row. */
    u32 keys_capacity;
    u32 *next; /* By build row: the next one with its key. */
    u32 rows_capacity;
    u8 *matched; /* By build row: RIGHT and FULL. */
    RowBuf rows;
    bool built;
    RegWatch watch;
    const Batch *probe;
    u32 probe_next;
    bool in_chain; /* The probe row at hand has candidates left, from `candidate` on. */
    u32 candidate;
    bool row_matched;
    bool probe_done;
    u32 unmatched_next; /* RIGHT and FULL, after the probe side. */
    /* Streaming: where each output row came from. */
    u16 *probe_of;  /* Live row of the probe batch; not for unmatched build rows. */
    u32 *build_of;  /* Build row or ROW_NONE. */
    u32 from_probe; /* So many output rows have a probe row. */
    Arena kept;     /* Bytes of the probe row at hand after a trip. */
    Cell *row;      /* Scratch: probe cells ++ build cells. */
    Cell *key;      /* Scratch. */
    u64 held;       /* As exec__spill_due() knows it. */
    JoinFile file;
    bool reseek; /* After a trip: the file stands elsewhere. */
} HashJoin;

static u8
kind_of(const HashJoin *join)
{
    return join->node.plan->u.hash.join;
}

static bool
keeps_build(const HashJoin *join)
{
    return kind_of(join) == JOIN_RIGHT || kind_of(join) == JOIN_FULL;
}

/* Key of a row; *usable_out false: a NULL that matches nothing. */
static Err
key_make(Exec *exec, HashJoin *join, ExecProgram *const *program, const Cell *row, Arena *arena,
         Slice *key_out, bool *usable_out)
{
    const PlanNode *plan = join->node.plan;
    *usable_out = true;
    for (u32 i = 0; i < join->key_count; i++) {
        Cell *cell = &join->key[i];
        Err err = exec__eval_in(exec, program[i], row, arena, cell);
        if (err != OK) return err;
        if (cell->type == CELL_NULL && !plan->u.hash.null_safe[i]) {
            *usable_out = false;
            return OK;
        }
        err = cell_apply_affinity(cell, exec__stamp_affinity(plan->u.hash.stamp[i].affinity),
                                  arena);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    Err err = exec__key_make(&join->maker, join->key, key_out);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static Err
grow_u32(u32 **array, u32 capacity)
{
    u32 *bigger = mem_realloc(*array, (size_t)capacity * sizeof(u32));
    if (bigger == NULL) return ERR_NOMEM;
    *array = bigger;
    return OK;
}

/* Enter key `number`, if it is plain, with the hash that a batch of one row gives it. */
static Err
map_add(HashJoin *join, u32 number)
{
    u32 hash;
    Batch one = {.rows = 1, .count = 1, .columns = join->key_count};
    if (!exec__tuple_is_plain(&join->map, join->key)) {
        join->all_plain = false;
        return OK;
    }
    for (u32 i = 0; i < join->key_count; i++) {
        join->probe_vec[i] = (Vec){.kind = VEC_CELL, .constant = true, .u.cell = &join->key[i]};
    }
    exec__tuples_hash(&join->map, &one, join->probe_vec, &hash);
    return exec__tuples_add(&join->map, hash, number);
}

/* Chain build row `row` behind the others of its key. */
static Err
chain_add(HashJoin *join, Slice key, u32 row)
{
    u32 number;
    bool added;
    Err err = exec__keyset_add(&join->keys, key, &number, &added);
    if (err == OK && added) err = exec__rowbuf_add(&join->key_cells, join->key);
    if (err == OK && added) err = map_add(join, number);
    if (err != OK) return err;
    if (number >= join->keys_capacity) {
        u32 capacity = MAX_OF(join->keys_capacity * 2, 64u);
        err = grow_u32(&join->head, capacity);
        if (err == OK) err = grow_u32(&join->tail, capacity);
        if (err != OK) return err;
        join->keys_capacity = capacity;
    }
    if (added) {
        join->head[number] = row;
    } else {
        join->next[join->tail[number]] = row;
    }
    join->tail[number] = row;
    return OK;
}

static Err
build_row(Exec *exec, HashJoin *join, u32 row)
{
    Slice key = SLICE_NONE;
    bool usable;
    if (row >= join->rows_capacity) {
        u32 capacity = MAX_OF(join->rows_capacity * 2, 64u);
        if (grow_u32(&join->next, capacity) != OK) return exec__fail(exec, ERR_NOMEM, NULL);
        join->rows_capacity = capacity;
    }
    join->next[row] = ROW_NONE;
    if (join->key_count == 0) return OK;
    Err err = key_make(exec, join, join->build_key, exec__rowbuf_row(&join->rows, row),
                       &join->node.bytes, &key, &usable);
    if (err != OK || !usable) return err;
    err = chain_add(join, key, row);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* ---- the build side in a file ---- */

static Err
file_row(Exec *exec, HashJoin *join, const Cell *row)
{
    Slice key = SLICE_NONE;
    bool usable = true;
    Err err = OK;
    if (join->key_count > 0) {
        err = key_make(exec, join, join->build_key, row, &join->node.bytes, &key, &usable);
    }
    if (err != OK) return err;
    err = exec__join_file_add(exec, &join->file, key, usable, row);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static void
build_drop(Exec *exec, HashJoin *join)
{
    exec__rowbuf_drop(&join->rows);
    exec__keyset_drop(&join->keys);
    exec__tuples_drop(&join->map);
    exec__rowbuf_drop(&join->key_cells);
    mem_free(join->head);
    mem_free(join->tail);
    mem_free(join->next);
    join->head = join->tail = join->next = NULL;
    join->keys_capacity = join->rows_capacity = 0;
    exec__spill_forget(exec, &join->held);
}

/* As long as the statement is within its budget, one join may hold more than its share. */
static Err
build_check(Exec *exec, HashJoin *join)
{
    if (join->file.in_use) return OK;
    u64 memory = exec__rowbuf_memory(&join->rows) + exec__keyset_memory(&join->keys) +
                 exec__rowbuf_memory(&join->key_cells) +
                 (u64)join->map.count * 2 * sizeof(TupleSlot) + (u64)join->rows.rows * sizeof(u32);
    if (!exec__spill_due(exec, &join->held, memory)) return OK;
    Err err = exec__join_file_begin(exec, &join->file, join->build_columns, join->key_count > 0,
                                    keeps_build(join));
    if (err != OK) return exec__fail(exec, err, NULL);
    for (u32 i = 0; err == OK && i < join->rows.rows; i++) {
        err = file_row(exec, join, exec__rowbuf_row(&join->rows, i));
        arena_reset(&join->node.bytes);
    }
    build_drop(exec, join);
    return err;
}

static Err
build_batch(Exec *exec, HashJoin *join, const Batch *in)
{
    Err err = OK;
    exec->status->build_rows += in->count;
    if (join->file.in_use) {
        Cell *row = join->row + join->probe_columns;
        for (u32 i = 0; err == OK && i < in->count; i++) {
            exec__load_all(in, batch_at(in, i), row);
            err = file_row(exec, join, row);
        }
        return err;
    }
    u32 first = join->rows.rows;
    err = exec__rowbuf_add_batch(&join->rows, in, 0, in->count);
    if (err != OK) return exec__fail(exec, err, NULL);
    for (u32 i = first; err == OK && i < join->rows.rows; i++) {
        err = build_row(exec, join, i);
    }
    return err == OK ? build_check(exec, join) : err;
}

/* ---- */

static Err
build_start(Exec *exec, HashJoin *join)
{
    Err err = exec__watch_begin(exec, &join->watch);
    if (err != OK) return err;
    exec__join_file_clear(exec, &join->file);
    exec__rowbuf_clear(&join->rows);
    exec__keyset_clear(&join->keys);
    exec__tuples_clear(&join->map);
    exec__rowbuf_clear(&join->key_cells);
    join->all_plain = true;
    exec__keymaker_reset(&join->maker);
    exec__rewind(exec, join->node.right);
    return OK;
}

static Err
build(Exec *exec, HashJoin *join)
{
    if (!exec__watch_same(exec, &join->watch)) {
        Err err = build_start(exec, join);
        if (err != OK) return err;
        for (;;) {
            const Batch *in = exec__next(exec, join->node.right,
                                         exec__demand(exec, BATCH_ROWS_MAX));
            err = build_batch(exec, join, in);
            if (err != OK) return err;
            arena_reset(&join->node.bytes);
            if (in->err != OK) return in->err;
            if (in->count == 0) break;
            err = exec__check(exec);
            if (err != OK) return err;
        }
        if (join->file.in_use) err = exec__join_file_end(exec, &join->file);
        if (err != OK) return exec__fail(exec, err, NULL);
        exec__watch_done(exec, &join->watch);
    }
    join->reseek = false;
    if (keeps_build(join) && join->file.in_use) {
        Err err = exec__join_file_unmatch(exec, &join->file);
        if (err != OK) return exec__fail(exec, err, NULL);
    } else if (keeps_build(join)) {
        mem_free(join->matched);
        join->matched = mem_alloc_zeroed(MAX_OF(join->rows.rows, 1u));
        if (join->matched == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    }
    join->built = true;
    return OK;
}

/* One output row: the scratch row's probe cells (or NULLs) and a build row (or NULLs). */
static void
emit_cells(HashJoin *join, u32 at, bool with_probe, u32 build_row_no, const Cell *from)
{
    ExecNode *node = &join->node;
    if (join->probe_of != NULL) {
        join->build_of[at] = build_row_no;
        u16 probe = join->probe == NULL ? PROBE_KEPT : (u16)(join->probe_next - 1);
        if (with_probe) join->probe_of[at] = probe;
        if (with_probe) join->from_probe = at + 1;
    }
    for (u32 i = 0; i < join->probe_columns; i++) {
        node->buffer[i][at] = with_probe ? join->row[i] : cell_null();
    }
    if (node->plan->columns == join->probe_columns) return;
    for (u32 i = 0; i < join->build_columns; i++) {
        node->buffer[join->probe_columns + i][at] = from != NULL ? from[i] : cell_null();
    }
}

static void
emit(HashJoin *join, u32 at, bool with_probe, u32 build_row_no)
{
    bool alone = build_row_no == ROW_NONE;
    emit_cells(join, at, with_probe, build_row_no,
               alone ? NULL : exec__rowbuf_row(&join->rows, build_row_no));
}

/* The same with a row of the file, whose bytes do not last. */
static Err
emit_file(Exec *exec, HashJoin *join, u32 at, bool with_probe, u32 build_row_no, const Cell *row)
{
    Cell *cell = join->row + join->probe_columns;
    for (u32 i = 0; i < join->build_columns; i++) {
        Err err = cell_copy(&row[i], &join->node.bytes, &cell[i]);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    emit_cells(join, at, with_probe, build_row_no, cell);
    return OK;
}

/* Hash the keys of a larger probe batch. */
static Err
probe_hash(Exec *exec, HashJoin *join)
{
    join->probe_hashed = false;
    if (join->vprobe == NULL || join->probe->count < BY_BATCH_MIN || join->file.in_use) return OK;
    for (u32 i = 0; i < join->key_count; i++) {
        Err err = exec__vexpr_eval(exec, join->vprobe[i], join->probe, &join->node.bytes,
                                   &join->probe_vec[i]);
        if (err != OK) return err;
    }
    exec__tuples_hash(&join->map, join->probe, join->probe_vec, join->probe_hash);
    join->probe_hashed = true;
    return OK;
}

/* Can the probe row at position `at` be judged by the map?  Its values must be such as the stamp's
   affinity leaves alone. */
static bool
probe_is_plain(const HashJoin *join, u32 at, bool *null_out)
{
    const PlanNode *plan = join->node.plan;
    *null_out = false;
    for (u32 i = 0; i < join->key_count; i++) {
        const Vec *vec = &join->probe_vec[i];
        u8 affinity = plan->u.hash.stamp[i].affinity;
        if (vec->kind == VEC_INT && vec->null == NULL && affinity != AFFINITY_TEXT) continue;
        Cell cell = vec_cell(vec, at);
        if (cell.type == CELL_NULL) {
            if (!plan->u.hash.null_safe[i]) *null_out = true;
        } else if (cell.type == CELL_INT) {
            if (affinity == AFFINITY_TEXT) return false;
        } else if (cell.type == CELL_TEXT) {
            if (affinity >= AFFINITY_NUMERIC) return false;
            const Collation *collation = plan->u.hash.stamp[i].collation;
            if (collation_hides_text(collation)) return false;
        } else {
            return false;
        }
    }
    return true;
}

/* Candidates by the map; *done_out false: it cannot tell. */
static void
probe_by_map(HashJoin *join, u32 at, bool *done_out)
{
    bool is_null;
    *done_out = false;
    if (!join->probe_hashed || !probe_is_plain(join, at, &is_null)) return;
    *done_out = true;
    if (is_null) return;
    u32 number = exec__tuples_find(&join->map, &join->key_cells, join->probe_vec, at,
                                   join->probe_hash[at]);
    if (number != TUPLE_NONE) join->candidate = join->head[number];
    if (number == TUPLE_NONE && !join->all_plain) *done_out = false;
}

/* Find the candidates of the probe row at hand in the file, from place `skip` on. */
static Err
file_probe(Exec *exec, HashJoin *join, u32 skip)
{
    Slice key = SLICE_NONE;
    bool usable = true, found = false;
    Err err = OK;
    join->candidate = ROW_NONE;
    join->reseek = false;
    if (join->key_count > 0) {
        err = key_make(exec, join, join->probe_key, join->row, &join->node.bytes, &key, &usable);
    }
    if (err != OK || !usable) return err;
    err = exec__join_file_probe(exec, &join->file, key, skip, &found);
    if (found) join->candidate = skip;
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* Start the next probe row: find its candidates. */
static Err
probe_start(Exec *exec, HashJoin *join)
{
    u32 at = batch_at(join->probe, join->probe_next++);
    Slice key;
    bool usable, done;
    exec__load_all(join->probe, at, join->row);
    join->row_matched = false;
    join->in_chain = true;
    join->candidate = ROW_NONE;
    if (UNLIKELY(join->file.in_use)) return file_probe(exec, join, 0);
    if (join->key_count == 0) {
        join->candidate = join->rows.rows > 0 ? 0 : ROW_NONE;
        return OK;
    }
    probe_by_map(join, at, &done);
    if (done) return OK;
    Err err = key_make(exec, join, join->probe_key, join->row, &join->node.bytes, &key, &usable);
    if (err != OK || !usable) return err;
    u32 number = exec__keyset_find(&join->keys, key);
    if (number != KEYSET_NONE) join->candidate = join->head[number];
    return OK;
}

static u32
candidate_after(const HashJoin *join, u32 row)
{
    if (join->key_count > 0) return join->next[row];
    return row + 1 < join->rows.rows ? row + 1 : ROW_NONE;
}

static Err
candidate_fits(Exec *exec, HashJoin *join, const Cell *row, bool *fits_out)
{
    *fits_out = true;
    if (join->condition == NULL) return OK;
    memcpy(join->row + join->probe_columns, row, join->build_columns * sizeof(Cell));
    ExecTruth truth = EXEC_FALSE;
    Err err = exec__truth_in(exec, join->condition, join->row, &join->node.bytes, &truth);
    *fits_out = truth == EXEC_TRUE;
    return err;
}

/* The same as chain_run() with candidates of the file. */
static Err
file_run(Exec *exec, HashJoin *join, u32 want, u32 *count)
{
    u8 kind = kind_of(join);
    bool first_only = kind == JOIN_SEMI || kind == JOIN_ANTI;
    Err err = join->reseek ? file_probe(exec, join, join->candidate) : OK;
    while (err == OK && join->candidate != ROW_NONE && *count < want) {
        const Cell *row;
        bool fits = false;
        err = exec__join_file_next(exec, &join->file, &row);
        if (err != OK) return exec__fail(exec, err, NULL);
        u32 place = join->candidate++;
        if (row == NULL) join->candidate = ROW_NONE;
        if (row == NULL) break;
        err = candidate_fits(exec, join, row, &fits);
        if (err != OK || !fits) continue;
        join->row_matched = true;
        if (join->file.matched != NULL) {
            exec__join_file_match(&join->file, (u64)row[join->build_columns].u.i);
        }
        if (kind != JOIN_ANTI) err = emit_file(exec, join, (*count)++, true, place, row);
        if (first_only) join->candidate = ROW_NONE;
    }
    return err;
}

/* Candidates of the probe row at hand, until the output is full or they are done. */
static Err
chain_run(Exec *exec, HashJoin *join, u32 want, u32 *count)
{
    u8 kind = kind_of(join);
    bool first_only = kind == JOIN_SEMI || kind == JOIN_ANTI;
    if (UNLIKELY(join->file.in_use)) {
        Err err = file_run(exec, join, want, count);
        if (err != OK) return err;
    }
    while (join->candidate != ROW_NONE && *count < want) {
        u32 row = join->candidate;
        bool fits;
        Err err = candidate_fits(exec, join, exec__rowbuf_row(&join->rows, row), &fits);
        if (err != OK) return err;
        join->candidate = candidate_after(join, row);
        if (!fits) continue;
        join->row_matched = true;
        if (join->matched != NULL) join->matched[row] = 1;
        if (kind != JOIN_ANTI) emit(join, (*count)++, true, row);
        if (first_only) join->candidate = ROW_NONE;
    }
    if (join->candidate != ROW_NONE) return OK;
    join->in_chain = false;
    bool alone = kind == JOIN_LEFT || kind == JOIN_FULL || kind == JOIN_ANTI;
    if (!join->row_matched && alone) emit(join, (*count)++, true, ROW_NONE);
    return OK;
}

/* RIGHT and FULL: the build rows that nobody matched. */
static Err
unmatched_run(Exec *exec, HashJoin *join, u32 want, u32 *count)
{
    while (join->file.in_use && join->unmatched_next < join->file.rows && *count < want) {
        u32 number = join->unmatched_next++;
        const Cell *row;
        if (exec__join_file_is_matched(&join->file, number)) continue;
        Err err = exec__join_file_at(exec, &join->file, number, &row);
        if (err != OK) return exec__fail(exec, err, NULL);
        err = emit_file(exec, join, (*count)++, false, number, row);
        if (err != OK) return err;
    }
    while (join->unmatched_next < join->rows.rows && *count < want) {
        u32 row = join->unmatched_next++;
        if (!join->matched[row]) emit(join, (*count)++, false, row);
    }
    return OK;
}

/* A probe row to work on; *stop_out: show the output first, or the probe side is at its end. */
static Err
probe_more(Exec *exec, HashJoin *join, u32 want, u32 count, bool *stop_out)
{
    *stop_out = false;
    if (join->probe != NULL) {
        if (join->probe_next < join->probe->count) return OK;
        *stop_out = true;
        if (join->probe->err != OK) return join->probe->err;
        if (count > 0) return OK;
        *stop_out = false;
    }
    if (count > 0) {
        /* They belong to a row kept over a trip; resuming must not find a newer probe batch. */
        *stop_out = true;
        return OK;
    }
    join->probe = exec__next(exec, join->node.input, want);
    join->probe_next = 0;
    if (join->probe->count == 0) {
        *stop_out = true;
        join->probe_done = join->probe->err == OK;
        return join->probe->err;
    }
    Err err = probe_hash(exec, join);
    return err == OK ? exec__check(exec) : err;
}

static Err
streaming_start(Exec *exec, HashJoin *join)
{
    join->probe_of = EXEC_ROOM(exec, u16, BATCH_ROWS_MAX);
    join->build_of = EXEC_ROOM(exec, u32, BATCH_ROWS_MAX);
    bool whole = join->probe_of != NULL && join->build_of != NULL;
    return whole ? OK : exec__fail(exec, ERR_NOMEM, NULL);
}

/* The build side stays as it is; the probe side goes on behind the row shown last. */
static Err
hash_resume(Exec *exec, ExecNode *node, u32 used)
{
    HashJoin *join = (HashJoin *)node;
    u32 last = used - 1;
    if (last >= join->from_probe) {
        join->unmatched_next = join->build_of[last] + 1;
        return OK;
    }
    u8 kind = kind_of(join);
    join->unmatched_next = 0;
    join->probe_done = false;
    bool kept = join->probe_of[last] == PROBE_KEPT;
    if (!kept) {
        exec__load_all(join->probe, batch_at(join->probe, join->probe_of[last]), join->row);
        arena_reset(&join->kept);
    }
    for (u32 i = 0; !kept && i < join->probe_columns; i++) {
        Err err = cell_copy(&join->row[i], &join->kept, &join->row[i]);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    u32 row = join->build_of[last];
    join->row_matched = row != ROW_NONE;
    join->in_chain = row != ROW_NONE && kind != JOIN_SEMI;
    if (join->file.in_use) {
        join->candidate = join->in_chain ? row + 1 : ROW_NONE;
        join->reseek = join->in_chain;
    } else {
        join->candidate = join->in_chain ? candidate_after(join, row) : ROW_NONE;
    }
    if (kept) return OK;
    Err err = exec__resume(exec, node->input, (u32)join->probe_of[last] + 1);
    join->probe = NULL;
    join->probe_next = 0;
    return err;
}

static void
hash_next(Exec *exec, ExecNode *node, u32 want)
{
    HashJoin *join = (HashJoin *)node;
    u32 count = 0;
    Err err = exec__out_reserve(exec, node, want);
    join->from_probe = 0;
    if (err == OK && node->streaming && join->probe_of == NULL) err = streaming_start(exec, join);
    if (err == OK && !join->built) err = build(exec, join);
    while (err == OK && count < want && !join->probe_done) {
        if (!join->in_chain) {
            bool stop = false;
            err = probe_more(exec, join, want, count, &stop);
            if (err != OK || stop) break;
            err = probe_start(exec, join);
            if (err != OK) break;
        }
        err = chain_run(exec, join, want, &count);
    }
    if (err == OK && join->probe_done && keeps_build(join)) {
        err = unmatched_run(exec, join, want, &count);
    }
    exec__out_rows(node, count, err);
}

static void
hash_rewind(Exec *exec, ExecNode *node)
{
    HashJoin *join = (HashJoin *)node;
    join->built = false;
    join->probe = NULL;
    join->probe_next = 0;
    join->in_chain = false;
    join->probe_done = false;
    join->unmatched_next = 0;
    exec__rewind(exec, node->input);
}

static void
hash_reset(Exec *exec, ExecNode *node)
{
    HashJoin *join = (HashJoin *)node;
    exec__watch_forget(&join->watch);
    exec__join_file_clear(exec, &join->file);
    if (join->held > 0) exec__spill_forget(exec, &join->held);
    exec__rowbuf_clear(&join->rows);
    exec__keyset_clear(&join->keys);
    exec__tuples_clear(&join->map);
    exec__rowbuf_clear(&join->key_cells);
}

static void
hash_close(Exec *exec, ExecNode *node)
{
    HashJoin *join = (HashJoin *)node;
    exec__join_file_free(exec, &join->file);
    exec__rowbuf_free(&join->rows);
    exec__keyset_free(&join->keys);
    exec__keymaker_free(&join->maker);
    exec__tuples_free(&join->map);
    exec__rowbuf_free(&join->key_cells);
    mem_free(join->head);
    mem_free(join->tail);
    mem_free(join->next);
    mem_free(join->matched);
    exec__watch_close(&join->watch);
    arena_free(&join->kept);
}

static const NodeOps hash_ops = {.next = hash_next,
                                 .rewind = hash_rewind,
                                 .resume = hash_resume,
                                 .reset = hash_reset,
                                 .close = hash_close};

static Err
open_kernels(Exec *exec, HashJoin *join)
{
    const PlanNode *plan = join->node.plan;
    u32 keys = MAX_OF(join->key_count, 1u);
    join->probe_vec = ARENA_NEW_ARRAY(&exec->arena, Vec, keys);
    if (join->probe_vec == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    if (join->key_count == 0) return OK;
    for (u32 i = 0; i < join->key_count; i++) {
        if (!exec__vexpr_fits(plan->u.hash.probe_key[i])) return OK;
    }
    VExpr **vprobe = ARENA_NEW_ARRAY(&exec->arena, VExpr *, keys);
    join->probe_hash = EXEC_ROOM(exec, u32, BATCH_ROWS_MAX);
    if (vprobe == NULL || join->probe_hash == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    Err err = OK;
    for (u32 i = 0; err == OK && i < join->key_count; i++) {
        err = exec__vexpr_open(exec, plan->u.hash.probe_key[i], &vprobe[i]);
    }
    join->vprobe = vprobe;
    return err;
}

Err
exec__hash_join_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &hash_ops, sizeof(HashJoin), node_out);
    if (err != OK) return err;
    HashJoin *join = (HashJoin *)*node_out;
    u32 keys = plan->u.hash.key_count;
    join->key_count = keys;
    join->probe_columns = plan->input->columns;
    join->build_columns = plan->right->columns;
    exec__spill_enlist(exec);
    exec__spill_enlist(exec); /* And the sort of a build side that goes to a file. */
    exec__rowbuf_init(exec, &join->rows, join->build_columns);
    exec__keyset_init(exec, &join->keys);
    arena_init(&join->kept, exec->account);
    join->row = ARENA_NEW_ARRAY(&exec->arena, Cell,
                                MAX_OF(join->probe_columns + join->build_columns, 1u));
    join->key = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(keys, 1u));
    const Collation **collation = ARENA_NEW_ARRAY(&exec->arena, const Collation *,
                                                  MAX_OF(keys, 1u));
    if (join->row == NULL || join->key == NULL || collation == NULL) {
        return exec__fail(exec, ERR_NOMEM, NULL);
    }
    for (u32 i = 0; i < keys; i++) {
        collation[i] = plan->u.hash.stamp[i].collation;
    }
    err = exec__keymaker_init(exec, &join->maker, collation, keys);
    if (err != OK) return exec__fail(exec, err, NULL);
    exec__tuples_init(exec, &join->map, collation, keys);
    exec__rowbuf_init(exec, &join->key_cells, keys);
    err = exec__node_open(exec, plan->input, &join->node.input);
    if (err == OK) err = exec__node_open(exec, plan->right, &join->node.right);
    if (err == OK) err = exec__watch_open(exec, &join->watch, plan->right);
    if (err == OK) {
        err = exec__compile_list(exec, plan->u.hash.probe_key, keys, &join->probe_key);
    }
    if (err == OK) {
        err = exec__compile_list(exec, plan->u.hash.build_key, keys, &join->build_key);
    }
    if (err == OK) err = open_kernels(exec, join);
    if (err == OK && plan->u.hash.condition != NULL) {
        err = exec__compile_condition(exec, plan->u.hash.condition, &join->condition);
    }
    return err;
}
