/*
 * plan_kit.h -- plans by hand over an in-memory store, run with every batch size.
 */
#pragma once

#include "exec/exec.h"
#include "exec/table_codec.h"
#include "rt/process.h"
#include "unit/exec/make_schema.h"
#include "value/number.h"

typedef struct Kit {
    Arena arena;
    Store *store;
    StoreTxn *txn;
    u32 nodes, subs, regs, sites, materials;
    PlanNode *material[8];
    u8 klass;
    FuncEnv func;
    ExecEnv env;
    Buf out;
    const Cell *params;
    u32 param_count;
} Kit;

static inline void
kit_open(Kit *k)
{
    ErrMsg msg = {0};
    StoreOptions options = {.in_memory = true, .create = true};
    *k = (Kit){.env = {.func = &k->func}};
    arena_init(&k->arena, NULL);
    assert_int_equal(store_open(rt_process_default(), NULL, &options, &k->store, &msg), OK);
    StoreTxnOptions how = {.level = STORE_SNAPSHOT};
    assert_int_equal(store_txn_begin(k->store, &how, &k->txn), OK);
}

static inline void
kit_close(Kit *k)
{
    store_txn_rollback(k->txn);
    store_close(k->store);
    buf_free(&k->out);
    arena_free(&k->arena);
}

/* ---- expressions ---- */

static inline PlanExpr *
x_new(Kit *k, u8 op)
{
    PlanExpr *x = ARENA_NEW(&k->arena, PlanExpr);
    x->op = op;
    x->collation = NULL;
    return x;
}
static inline PlanExpr *
x_cell(Kit *k, Cell cell)
{
    PlanExpr *x = x_new(k, PX_CONST);
    x->u.constant = cell;
    return x;
}
static inline PlanExpr *
x_int(Kit *k, i64 i)
{
    return x_cell(k, cell_int(i));
}
static inline PlanExpr *
x_text(Kit *k, const char *text)
{
    return x_cell(k, cell_text(text, strlen(text)));
}
static inline PlanExpr *
x_null(Kit *k)
{
    return x_cell(k, cell_null());
}
static inline PlanExpr *
x_col(Kit *k, u32 number)
{
    PlanExpr *x = x_new(k, PX_COLUMN);
    x->u.number = number;
    x->flags = PX_FLAG_READS_ROW;
    return x;
}
static inline PlanExpr *
x_reg(Kit *k, u32 number)
{
    PlanExpr *x = x_new(k, PX_REG);
    x->u.number = number;
    x->flags = PX_FLAG_READS_REG;
    return x;
}
static inline PlanExpr *
x_param(Kit *k, u32 number)
{
    PlanExpr *x = x_new(k, PX_PARAM);
    x->u.number = number;
    x->flags = PX_FLAG_READS_PARAM;
    return x;
}
#define X_READS (PX_FLAG_READS_ROW | PX_FLAG_READS_REG | PX_FLAG_READS_PARAM | PX_FLAG_HAS_SUB)
static inline PlanExpr *
x_list(Kit *k, u8 op, u32 count, PlanExpr *const *arg)
{
    PlanExpr *x = x_new(k, op);
    x->arg = ARENA_NEW_ARRAY(&k->arena, PlanExpr *, MAX_OF(count, 1u));
    x->arg_count = count;
    x->collation = op >= PX_EQ && op <= PX_IS_NOT ? &collation_binary : NULL;
    for (u32 i = 0; i < count; i++) {
        x->arg[i] = arg[i];
        x->flags |= (u16)(arg[i]->flags & X_READS);
        if (arg[i]->klass > x->klass) x->klass = arg[i]->klass;
    }
    return x;
}
#define X(k, op, ...)                                                       \
    x_list(k, op, sizeof((PlanExpr *[]){__VA_ARGS__}) / sizeof(PlanExpr *), \
           (PlanExpr *[]){__VA_ARGS__})
static inline PlanExpr *
x_func(Kit *k, const FuncDef *def, u32 count, PlanExpr *const *arg)
{
    PlanExpr *x = x_list(k, PX_FUNC, count, arg);
    x->u.func.def = def;
    x->u.func.site = k->sites++;
    if ((def->flags & FUNC_FALLIBLE) != 0 && x->klass < PLAN_FALLIBLE) x->klass = PLAN_FALLIBLE;
    if ((def->flags & FUNC_VOLATILE) != 0) x->klass = k->klass = PLAN_VOLATILE;
    return x;
}
static inline PlanSub *
x_plan_sub(Kit *k, PlanNode *root)
{
    PlanSub *sub = ARENA_NEW(&k->arena, PlanSub);
    sub->root = root;
    sub->number = k->subs++;
    sub->columns = root->columns;
    sub->cmp = ARENA_NEW_ARRAY(&k->arena, PlanStamp, root->columns);
    for (u32 i = 0; i < root->columns; i++) {
        sub->cmp[i].collation = &collation_binary;
    }
    return sub;
}
/* Bind register `reg` to `expr` before the subquery runs. */
static inline void
x_bind(Kit *k, PlanSub *sub, u32 reg, PlanExpr *expr)
{
    sub->bind_reg = ARENA_NEW(&k->arena, u32);
    sub->bind_expr = ARENA_NEW(&k->arena, PlanExpr *);
    sub->bind_reg[0] = reg;
    sub->bind_expr[0] = expr;
    sub->bind_count = 1;
    sub->correlated = true;
}
static inline PlanExpr *
x_sub(Kit *k, u8 op, PlanSub *sub, u32 count, PlanExpr *const *arg)
{
    PlanExpr *x = x_list(k, op, count, arg);
    x->u.sub = sub;
    x->flags |= PX_FLAG_HAS_SUB;
    if (sub->bind_count > 0) x->flags |= (u16)(sub->bind_expr[0]->flags & X_READS);
    return x;
}

/* ---- nodes ---- */

static inline PlanNode *
n_new(Kit *k, u8 kind, u32 columns, PlanNode *input)
{
    PlanNode *node = ARENA_NEW(&k->arena, PlanNode);
    node->kind = kind;
    node->columns = columns;
    node->number = k->nodes++;
    node->input = input;
    return node;
}
static inline PlanExpr **
x_copy(Kit *k, u32 count, PlanExpr *const *expr)
{
    PlanExpr **copy = ARENA_NEW_ARRAY(&k->arena, PlanExpr *, MAX_OF(count, 1u));
    for (u32 i = 0; i < count; i++) {
        copy[i] = expr[i];
    }
    return copy;
}
/* Rows of cells, `columns` wide. */
static inline PlanNode *
n_cells(Kit *k, u32 columns, u32 rows, const Cell *cells)
{
    PlanNode *node = n_new(k, PLAN_VALUES, columns, NULL);
    node->u.values.row_count = rows;
    node->u.values.row = ARENA_NEW_ARRAY(&k->arena, PlanExpr **, MAX_OF(rows, 1u));
    for (u32 i = 0; i < rows; i++) {
        node->u.values.row[i] = ARENA_NEW_ARRAY(&k->arena, PlanExpr *, MAX_OF(columns, 1u));
        for (u32 c = 0; c < columns; c++) {
            node->u.values.row[i][c] = x_cell(k, cells[i * columns + c]);
        }
    }
    return node;
}
static inline PlanNode *
n_project(Kit *k, PlanNode *input, u32 count, PlanExpr *const *expr)
{
    PlanNode *node = n_new(k, PLAN_PROJECT, count, input);
    node->u.project.expr = x_copy(k, count, expr);
    return node;
}
#define PROJECT(k, input, ...)                                                    \
    n_project(k, input, sizeof((PlanExpr *[]){__VA_ARGS__}) / sizeof(PlanExpr *), \
              (PlanExpr *[]){__VA_ARGS__})
static inline PlanNode *
n_filter(Kit *k, PlanNode *input, PlanExpr *condition)
{
    PlanNode *node = n_new(k, PLAN_FILTER, input->columns, input);
    node->u.filter.condition = condition;
    return node;
}
static inline PlanNode *
n_limit(Kit *k, PlanNode *input, PlanExpr *limit, PlanExpr *offset)
{
    PlanNode *node = n_new(k, PLAN_LIMIT, input->columns, input);
    node->u.limit.limit = limit;
    node->u.limit.offset = offset;
    return node;
}
static inline PlanNode *
n_sort(Kit *k, PlanNode *input, u32 column, bool desc, PlanExpr *limit)
{
    PlanNode *node = n_new(k, PLAN_SORT, input->columns, input);
    node->u.sort.key = ARENA_NEW(&k->arena, PlanSortKey);
    node->u.sort.key_count = 1;
    node->u.sort.key[0] = (PlanSortKey){
        .expr = x_col(k, column), .collation = &collation_binary, .desc = desc, .nulls_last = desc};
    node->u.sort.limit = limit;
    return node;
}
static inline PlanNode *
n_loop(Kit *k, u8 join, PlanNode *outer, PlanNode *inner, PlanExpr *condition)
{
    u32 inner_columns = join == JOIN_SEMI || join == JOIN_ANTI ? 0 : inner->columns;
    PlanNode *node = n_new(k, PLAN_LOOP_JOIN, outer->columns + inner_columns, outer);
    node->right = inner;
    node->u.loop.join = join;
    node->u.loop.condition = condition;
    return node;
}
/* Register `reg` gets outer cell `column`. */
static inline void
n_loop_bind(Kit *k, PlanNode *node, u32 reg, u32 column)
{
    node->u.loop.bind_count = 1;
    node->u.loop.bind_reg = ARENA_NEW(&k->arena, u32);
    node->u.loop.bind_column = ARENA_NEW(&k->arena, u32);
    node->u.loop.bind_reg[0] = reg;
    node->u.loop.bind_column[0] = column;
}
static inline PlanNode *
n_hash(Kit *k, u8 join, PlanNode *probe, u32 probe_key, PlanNode *build, u32 build_key,
       PlanExpr *condition)
{
    u32 build_columns = join == JOIN_SEMI || join == JOIN_ANTI ? 0 : build->columns;
    PlanNode *node = n_new(k, PLAN_HASH_JOIN, probe->columns + build_columns, probe);
    node->right = build;
    node->u.hash.join = join;
    node->u.hash.key_count = probe_key == U32_MAX ? 0 : 1;
    node->u.hash.condition = condition;
    if (probe_key == U32_MAX) return node;
    node->u.hash.probe_key = x_copy(k, 1, (PlanExpr *[]){x_col(k, probe_key)});
    node->u.hash.build_key = x_copy(k, 1, (PlanExpr *[]){x_col(k, build_key)});
    node->u.hash.stamp = ARENA_NEW(&k->arena, PlanStamp);
    node->u.hash.stamp[0].collation = &collation_binary;
    node->u.hash.null_safe = ARENA_NEW(&k->arena, bool);
    return node;
}
static inline const Collation **
n_binary(Kit *k, u32 columns)
{
    const Collation **collation = ARENA_NEW_ARRAY(&k->arena, const Collation *,
                                                  MAX_OF(columns, 1u));
    for (u32 i = 0; i < columns; i++) {
        collation[i] = &collation_binary;
    }
    return collation;
}
static inline PlanNode *
n_compound(Kit *k, u8 op, u32 arms, PlanNode *const *arm)
{
    PlanNode *node = n_new(k, PLAN_COMPOUND, arm[0]->columns, NULL);
    node->u.compound.op = op;
    node->u.compound.arm_count = arms;
    node->u.compound.arm = ARENA_NEW_ARRAY(&k->arena, PlanNode *, arms);
    for (u32 i = 0; i < arms; i++) {
        node->u.compound.arm[i] = arm[i];
    }
    node->u.compound.collation = n_binary(k, node->columns);
    return node;
}
static inline PlanNode *
n_scan(Kit *k, TableDef *table)
{
    PlanNode *node = n_new(k, PLAN_SCAN, table->column_count, NULL);
    node->u.scan.table = table;
    node->u.scan.column = ARENA_NEW_ARRAY(&k->arena, u16, table->column_count);
    for (u16 c = 0; c < table->column_count; c++) {
        node->u.scan.column[c] = c;
    }
    return node;
}
static inline void
n_scan_eq(Kit *k, PlanNode *node, PlanExpr *value)
{
    node->u.scan.eq = ARENA_NEW(&k->arena, PlanKeyPart);
    node->u.scan.eq[0].value = value;
    node->u.scan.eq_count = 1;
}

/* ---- data ---- */

/* Write a row of the table and of all its indexes. */
static inline void
kit_put(Kit *k, TableDef *table, i64 rowid, const Cell *row)
{
    TableCodec codec;
    Buf key = {0}, value = {0};
    StoreVerdict verdict;
    Cell cells[16];
    assert_int_equal(table_codec_init(&codec, table, &k->arena), OK);
    assert_int_equal(table_row_key(&codec, row, rowid, &key), OK);
    assert_int_equal(table_encode(&codec, row, buf_slice(&key), &value), OK);
    assert_int_equal(store_put(k->txn, table->tree, buf_slice(&key), buf_slice(&value),
                               STORE_PUT_INSERT, &verdict),
                     OK);
    for (u16 i = 0; i < table->index_count; i++) {
        IndexCodec index;
        bool claims;
        assert_int_equal(index_codec_init(&index, table->index[i], &k->arena), OK);
        for (u16 c = 0; c < index.columns; c++) {
            cells[c] = row[index.column[c].column];
        }
        assert_int_equal(index_encode(&index, cells, rowid, &key, &value, &claims), OK);
        assert_int_equal(store_put(k->txn, table->index[i]->tree, buf_slice(&key),
                                   buf_slice(&value), STORE_PUT_INSERT, &verdict),
                         OK);
    }
    buf_free(&key);
    buf_free(&value);
}

/* ---- running ---- */

static inline void
kit_print(Buf *out, const Cell *cell)
{
    char number[NUMBER_TEXT_BYTES];
    Err err = OK;
    switch (cell->type) {
    case CELL_NULL: err = buf_append_text(out, "~"); break;
    case CELL_INT: err = buf_append(out, number, number_put_int(number, cell->u.i)); break;
    case CELL_REAL: err = buf_append(out, number, number_put_real(number, cell->u.r)); break;
    default: err = buf_append(out, cell->u.p, cell->bytes); break;
    }
    assert_int_equal(err, OK);
}

static inline void
kit_print_row(Buf *out, const Cell *row, u32 columns)
{
    for (u32 i = 0; i < columns; i++) {
        if (i > 0) assert_int_equal(buf_append_byte(out, '|'), OK);
        kit_print(out, &row[i]);
    }
    assert_int_equal(buf_append_byte(out, ' '), OK);
}

/* Rows as text: cells joined by |, each row followed by a blank; an error as !CODE. */
static inline void
kit_collect(Kit *k, Exec *exec, u32 columns, Buf *out)
{
    StoreTxn *txn[3] = {k->txn, k->txn, k->txn};
    bool row = true;
    buf_clear(out);
    assert_int_equal(exec_start(exec, txn, k->params, k->param_count), OK);
    while (row) {
        Err err = exec_step(exec, &row);
        if (err != OK) {
            assert_int_equal(buf_printf(out, "!%s", err_name(err)), OK);
            assert_int_equal(exec_error(exec)->err, err);
            break;
        }
        if (row) kit_print_row(out, exec_row(exec), columns);
    }
    assert_int_equal(buf_append_byte(out, 0), OK);
    exec_reset(exec);
}

static inline Plan *
kit_plan(Kit *k, PlanNode *root)
{
    Plan *plan = ARENA_NEW(&k->arena, Plan);
    plan->root = root;
    plan->column_count = root->columns;
    plan->param_count = k->param_count;
    plan->reg_count = k->regs;
    plan->node_count = k->nodes;
    plan->sub_count = k->subs;
    plan->site_count = k->sites;
    plan->material_count = k->materials;
    plan->material = k->material;
    plan->klass = k->klass;
    return plan;
}

/* The result must be `expected`, with every batch size and on a second run. */
static inline void
kit_expect(Kit *k, PlanNode *root, const char *expected)
{
    static const u32 sizes[] = {0, 1, 2, 3, 2048};
    Plan *plan = kit_plan(k, root);
    for (size_t i = 0; i < 2 * COUNT_OF(sizes); i++) {
        ErrMsg msg = {0};
        Exec *exec;
        k->env.batch_rows = sizes[i / 2];
        k->env.trip_every = i % 2; /* A trip after every row changes nothing. */
        Err err = exec_open(plan, &k->env, &exec, &msg);
        if (err != OK) fail_msg("exec_open: %s", err_message(&msg));
        for (u32 run = 0; run < 2; run++) {
            kit_collect(k, exec, root->columns, &k->out);
            assert_string_equal((const char *)k->out.p, expected);
        }
        exec_close(exec);
    }
    k->env.batch_rows = 0;
    k->env.trip_every = 0;
}

/* The row program is not linked into these tests. */
typedef struct ExecWrite ExecWrite;
Err exec__write_open(Exec *exec);
Err exec__write_run(Exec *exec);
void exec__write_reset(Exec *exec);
void exec__write_close(Exec *exec);
__attribute__((weak)) Err
exec__write_open(Exec *exec)
{
    (void)exec;
    return ERR_UNSUPPORTED;
}
__attribute__((weak)) Err
exec__write_run(Exec *exec)
{
    (void)exec;
    return ERR_UNSUPPORTED;
}
__attribute__((weak)) void
exec__write_reset(Exec *exec)
{
    (void)exec;
}
__attribute__((weak)) void
exec__write_close(Exec *exec)
{
    (void)exec;
}
