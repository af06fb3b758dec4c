/*
 * node_test.c -- every operator gives the right rows, whatever the batch size.
 *
 * Method: plans by hand over VALUES and small tables; each runs with growing batches and with
 * batches of 1, 2, 3 and 2,048 rows, twice each, and must print the same text.
 */
#include "unit/exec/plan_kit.h"

/* ---- functions for the tests ---- */

static Err
count_step(FuncCall *call, u32 argc, const Cell *argv)
{
    if (argc == 0 || argv[0].type != CELL_NULL) (*(i64 *)call->state)++;
    return OK;
}
static Err
int_value(FuncCall *call, Cell *out)
{
    *out = cell_int(*(i64 *)call->state);
    return OK;
}
static const FuncDef count_def = {.name = "count",
                                  .argc_max = 1,
                                  .kind = FUNC_AGGREGATE,
                                  .state_bytes = 8,
                                  .step = count_step,
                                  .value = int_value};
static Err
sum_step(FuncCall *call, u32 argc, const Cell *argv)
{
    (void)argc;
    *(i64 *)call->state += cell_to_int(&argv[0]);
    return OK;
}
static const FuncDef sum_def = {.name = "sum",
                                .argc_min = 1,
                                .argc_max = 1,
                                .kind = FUNC_AGGREGATE,
                                .state_bytes = 8,
                                .step = sum_step,
                                .value = int_value};
typedef struct MaxState {
    bool any;
    i64 max;
} MaxState;
static Err
max_step(FuncCall *call, u32 argc, const Cell *argv)
{
    MaxState *state = call->state;
    (void)argc;
    if (argv[0].type == CELL_NULL) return OK;
    if (!state->any || argv[0].u.i > state->max) state->max = argv[0].u.i;
    state->any = true;
    return OK;
}
static Err
max_value(FuncCall *call, Cell *out)
{
    MaxState *state = call->state;
    *out = state->any ? cell_int(state->max) : cell_null();
    return OK;
}
static const FuncDef max_def = {.name = "max",
                                .argc_min = 1,
                                .argc_max = 1,
                                .kind = FUNC_AGGREGATE,
                                .flags = FUNC_MINMAX | FUNC_MAX,
                                .state_bytes = sizeof(MaxState),
                                .step = max_step,
                                .value = max_value};
/* The arguments in the order they came, as text. */
static Err
chain_step(FuncCall *call, u32 argc, const Cell *argv)
{
    (void)argc;
    kit_print(call->state, &argv[0]);
    return OK;
}
static Err
chain_value(FuncCall *call, Cell *out)
{
    Buf *buf = call->state;
    return cell_text_copy(buf->p, buf->bytes, call->arena, out);
}
static void
chain_free(FuncCall *call)
{
    buf_free(call->state);
}
static const FuncDef chain_def = {.name = "chain",
                                  .argc_min = 1,
                                  .argc_max = 1,
                                  .kind = FUNC_AGGREGATE,
                                  .flags = FUNC_ORDERED,
                                  .state_bytes = sizeof(Buf),
                                  .step = chain_step,
                                  .value = chain_value,
                                  .state_free = chain_free};
/* Fails on a negative number. */
static Err
picky(FuncCall *call, u32 argc, const Cell *argv, Cell *out)
{
    (void)argc;
    if (argv[0].type == CELL_INT && argv[0].u.i < 0) {
        return err_set(call->msg, ERR_SQL, "picky");
    }
    *out = argv[0];
    return OK;
}
static const FuncDef picky_def = {
    .name = "picky", .argc_min = 1, .argc_max = 1, .flags = FUNC_FALLIBLE, .scalar = picky};

static PlanExpr *
x_picky(Kit *k, PlanExpr *arg)
{
    return x_func(k, &picky_def, 1, &arg);
}

#define I(x)                         \
    {                                \
        .type = CELL_INT, .u.i = (x) \
    }
#define N                 \
    {                     \
        .type = CELL_NULL \
    }
#define R(x)                          \
    {                                 \
        .type = CELL_REAL, .u.r = (x) \
    }
#define T(x)                                                              \
    {                                                                     \
        .type = CELL_TEXT, .bytes = sizeof(x) - 1, .u.p = (const u8 *)(x) \
    }

static PlanNode *
numbers(Kit *k, i64 from, i64 to)
{
    Cell cells[4096];
    u32 count = 0;
    for (i64 i = from; i <= to; i++) {
        cells[count++] = cell_int(i);
    }
    return n_cells(k, 1, count, cells);
}

static void
values_filter_project_limit(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    kit_expect(&k, numbers(&k, 1, 7), "1 2 3 4 5 6 7 ");
    kit_expect(&k, numbers(&k, 1, 0), "");
    kit_expect(&k, n_filter(&k, numbers(&k, 1, 9), X(&k, PX_GT, x_col(&k, 0), x_int(&k, 6))),
               "7 8 9 ");
    PlanExpr *even = X(&k, PX_EQ, X(&k, PX_REM, x_col(&k, 0), x_int(&k, 2)), x_int(&k, 0));
    kit_expect(&k,
               PROJECT(&k, n_filter(&k, numbers(&k, 1, 9), even),
                       X(&k, PX_MUL, x_col(&k, 0), x_int(&k, 10)), x_col(&k, 0)),
               "20|2 40|4 60|6 80|8 ");
    kit_expect(&k, n_limit(&k, numbers(&k, 1, 9), x_int(&k, 3), x_int(&k, 4)), "5 6 7 ");
    kit_expect(&k, n_limit(&k, numbers(&k, 1, 9), x_int(&k, -1), x_int(&k, 7)), "8 9 ");
    kit_expect(&k, n_limit(&k, numbers(&k, 1, 9), x_int(&k, 0), NULL), "");
    kit_expect(&k, n_limit(&k, numbers(&k, 1, 9), x_text(&k, "2"), x_cell(&k, cell_real(1.0))),
               "2 3 ");
    kit_expect(&k, n_limit(&k, numbers(&k, 1, 9), x_null(&k), NULL), "!ERR_MISMATCH");
    kit_expect(&k, n_limit(&k, numbers(&k, 1, 9), x_cell(&k, cell_real(1.5)), NULL),
               "!ERR_MISMATCH");
    kit_expect(&k, PROJECT(&k, n_new(&k, PLAN_ONE_ROW, 0, NULL), x_int(&k, 5)), "5 ");
    kit_close(&k);
}

static void
an_error_belongs_to_its_row(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    static const Cell cells[] = {I(1), I(2), I(-3), I(4)};
    PlanNode *bad = n_cells(&k, 1, 4, cells);
    kit_expect(&k, PROJECT(&k, bad, x_picky(&k, x_col(&k, 0))), "1 2 !ERR_SQL");
    kit_expect(&k,
               n_limit(&k, PROJECT(&k, n_cells(&k, 1, 4, cells), x_picky(&k, x_col(&k, 0))),
                       x_int(&k, 2), NULL),
               "1 2 ");
    /* The other conjunct first: the bad row is never evaluated. */
    PlanExpr *small = X(&k, PX_LT, x_col(&k, 0), x_int(&k, 2));
    PlanExpr *positive = X(&k, PX_GT, x_col(&k, 0), x_int(&k, 0));
    PlanExpr *call = X(&k, PX_NOT_NULL, x_picky(&k, x_col(&k, 0)));
    kit_expect(&k, n_filter(&k, n_cells(&k, 1, 4, cells), X(&k, PX_AND, call, small)),
               "1 !ERR_SQL");
    kit_expect(&k, n_filter(&k, n_cells(&k, 1, 4, cells), X(&k, PX_AND, positive, call)), "1 2 4 ");
    /* Through a join and a compound. */
    PlanNode *join = n_loop(&k, JOIN_INNER,
                            PROJECT(&k, n_cells(&k, 1, 4, cells), x_picky(&k, x_col(&k, 0))),
                            numbers(&k, 7, 8), NULL);
    kit_expect(&k, join, "1|7 1|8 2|7 2|8 !ERR_SQL");
    PlanNode *arms[] = {numbers(&k, 5, 6),
                        PROJECT(&k, n_cells(&k, 1, 4, cells), x_picky(&k, x_col(&k, 0)))};
    kit_expect(&k, n_compound(&k, SET_UNION_ALL, 2, arms), "5 6 1 2 !ERR_SQL");
    kit_close(&k);
}

static void
loop_joins(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    PlanExpr *less = X(&k, PX_LT, x_col(&k, 1), x_col(&k, 0));
    kit_expect(&k, n_loop(&k, JOIN_INNER, numbers(&k, 1, 3), numbers(&k, 1, 3), less),
               "2|1 3|1 3|2 ");
    kit_expect(&k, n_loop(&k, JOIN_LEFT, numbers(&k, 1, 3), numbers(&k, 1, 3), less),
               "1|~ 2|1 3|1 3|2 ");
    kit_expect(&k, n_loop(&k, JOIN_SEMI, numbers(&k, 1, 3), numbers(&k, 1, 3), less), "2 3 ");
    kit_expect(&k, n_loop(&k, JOIN_ANTI, numbers(&k, 1, 3), numbers(&k, 1, 3), less), "1 ");
    kit_expect(&k, n_loop(&k, JOIN_SEMI, numbers(&k, 1, 3), numbers(&k, 1, 3), NULL), "1 2 3 ");
    kit_expect(&k, n_loop(&k, JOIN_ANTI, numbers(&k, 1, 3), numbers(&k, 1, 0), NULL), "1 2 3 ");
    kit_expect(&k, n_loop(&k, JOIN_LEFT, numbers(&k, 1, 0), numbers(&k, 1, 3), NULL), "");
    /* The inner side reads a register. */
    u32 reg = k.regs++;
    PlanNode *inner = n_filter(&k, numbers(&k, 1, 4), X(&k, PX_LE, x_col(&k, 0), x_reg(&k, reg)));
    PlanNode *join = n_loop(&k, JOIN_INNER, numbers(&k, 1, 3), inner, NULL);
    n_loop_bind(&k, join, reg, 0);
    kit_expect(&k, join, "1|1 2|1 2|2 3|1 3|2 3|3 ");
    kit_close(&k);
}

static void
hash_joins(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    static const Cell left[] = {I(1), T("a"), I(2), T("b"), N, T("n"), I(2), T("c"), I(4), T("d")};
    static const Cell right[] = {I(2),   T("x"), I(3),   T("y"), N,
                                 T("z"), R(2.0), T("w"), I(1),   T("v")};
#define LR n_cells(&k, 2, 5, left), 0, n_cells(&k, 2, 5, right), 0
    kit_expect(&k, n_hash(&k, JOIN_INNER, LR, NULL),
               "1|a|1|v 2|b|2|x 2|b|2.0|w 2|c|2|x 2|c|2.0|w ");
    kit_expect(&k, n_hash(&k, JOIN_LEFT, LR, NULL),
               "1|a|1|v 2|b|2|x 2|b|2.0|w ~|n|~|~ 2|c|2|x 2|c|2.0|w 4|d|~|~ ");
    kit_expect(&k, n_hash(&k, JOIN_RIGHT, LR, NULL),
               "1|a|1|v 2|b|2|x 2|b|2.0|w 2|c|2|x 2|c|2.0|w ~|~|3|y ~|~|~|z ");
    kit_expect(&k, n_hash(&k, JOIN_FULL, LR, NULL),
               "1|a|1|v 2|b|2|x 2|b|2.0|w ~|n|~|~ 2|c|2|x 2|c|2.0|w 4|d|~|~ ~|~|3|y ~|~|~|z ");
    kit_expect(&k, n_hash(&k, JOIN_SEMI, LR, NULL), "1|a 2|b 2|c ");
    kit_expect(&k, n_hash(&k, JOIN_ANTI, LR, NULL), "~|n 4|d ");
    PlanExpr *not_x = X(&k, PX_NE, x_col(&k, 3), x_text(&k, "x"));
    kit_expect(&k, n_hash(&k, JOIN_FULL, LR, not_x),
               "1|a|1|v 2|b|2.0|w ~|n|~|~ 2|c|2.0|w 4|d|~|~ ~|~|2|x ~|~|3|y ~|~|~|z ");
    PlanNode *safe = n_hash(&k, JOIN_INNER, LR, NULL);
    safe->u.hash.null_safe[0] = true;
    kit_expect(&k, safe, "1|a|1|v 2|b|2|x 2|b|2.0|w ~|n|~|z 2|c|2|x 2|c|2.0|w ");
    /* Without keys: the condition alone. */
    PlanExpr *less = X(&k, PX_LT, x_col(&k, 0), x_col(&k, 1));
    kit_expect(&k, n_hash(&k, JOIN_FULL, numbers(&k, 1, 3), U32_MAX, numbers(&k, 1, 3), 0, less),
               "1|2 1|3 2|3 3|~ ~|1 ");
    kit_close(&k);
}

static void
sorting_is_stable(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    static const Cell cells[] = {I(2),   T("a"), N,      T("b"), I(1), T("c"), T("x"), T("d"),
                                 R(2.0), T("e"), R(1.5), T("f"), N,    T("g"), I(1),   T("h")};
    kit_expect(&k, n_sort(&k, n_cells(&k, 2, 8, cells), 0, false, NULL),
               "~|b ~|g 1|c 1|h 1.5|f 2|a 2.0|e x|d ");
    kit_expect(&k, n_sort(&k, n_cells(&k, 2, 8, cells), 0, true, NULL),
               "x|d 2|a 2.0|e 1.5|f 1|c 1|h ~|b ~|g ");
    kit_expect(&k, n_sort(&k, n_cells(&k, 2, 8, cells), 0, false, x_int(&k, 3)), "~|b ~|g 1|c ");
    kit_expect(&k, n_sort(&k, n_cells(&k, 2, 8, cells), 0, false, x_int(&k, 0)), "");
    PlanNode *last = n_sort(&k, n_cells(&k, 2, 8, cells), 0, false, NULL);
    last->u.sort.key[0].nulls_last = true;
    kit_expect(&k, last, "1|c 1|h 1.5|f 2|a 2.0|e x|d ~|b ~|g ");
    kit_close(&k);
}

static PlanNode *
n_group(Kit *k, PlanNode *input, u32 keys, u32 agg_count, const PlanAgg *agg, u32 bare)
{
    PlanNode *node = n_new(k, PLAN_GROUP, keys + agg_count + bare, input);
    PlanExpr *column[8];
    for (u32 i = 0; i < 8; i++) {
        column[i] = x_col(k, i);
    }
    node->u.group.key_count = keys;
    node->u.group.key = x_copy(k, keys, column);
    node->u.group.key_collation = n_binary(k, keys);
    node->u.group.agg_count = agg_count;
    node->u.group.agg = ARENA_NEW_ARRAY(&k->arena, PlanAgg, agg_count + 1);
    memcpy(node->u.group.agg, agg, agg_count * sizeof(PlanAgg));
    node->u.group.bare_count = bare;
    node->u.group.bare = x_copy(k, bare, column + 1);
    node->u.group.bare_agg = -1;
    return node;
}

static PlanAgg
agg_on(Kit *k, const FuncDef *def, u32 column)
{
    PlanAgg agg = {.def = def, .site = k->sites++, .arg_count = 1};
    agg.arg = x_copy(k, 1, (PlanExpr *[]){x_col(k, column)});
    return agg;
}

static void
groups(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    static const Cell cells[] = {I(2), I(10), N, I(20), I(1),   I(5), I(2), I(30),
                                 I(1), N,     N, I(1),  R(2.0), I(7), I(1), I(4)};
    PlanAgg aggs[] = {{.def = &count_def}, agg_on(&k, &sum_def, 1), agg_on(&k, &chain_def, 1)};
#define ROWS n_cells(&k, 2, 8, cells)
    kit_expect(&k, n_group(&k, ROWS, 1, 3, aggs, 0), "~|2|21|201 1|3|9|5~4 2|3|47|10307 ");
    kit_expect(&k, n_group(&k, ROWS, 0, 3, aggs, 0), "8|77|1020530~174 ");
    kit_expect(&k, n_group(&k, numbers(&k, 1, 0), 0, 1, aggs, 0), "0 ");
    kit_expect(&k, n_group(&k, n_cells(&k, 2, 0, cells), 1, 1, aggs, 0), "");
    PlanNode *down = n_group(&k, ROWS, 1, 1, aggs, 0);
    down->u.group.key_desc = ARENA_NEW(&k.arena, bool);
    down->u.group.key_desc[0] = true;
    kit_expect(&k, down, "2|3 1|3 ~|2 ");
    /* Bare columns: from the first row, or from the row with the maximum. */
    kit_expect(&k, n_group(&k, ROWS, 1, 1, aggs, 1), "~|2|20 1|3|5 2|3|10 ");
    PlanAgg max[] = {agg_on(&k, &max_def, 1)};
    PlanNode *governed = n_group(&k, ROWS, 1, 1, max, 1);
    governed->u.group.bare_agg = 0;
    kit_expect(&k, governed, "~|20|20 1|5|5 2|30|30 ");
    /* Ordered input. */
    PlanNode *ordered = n_group(&k, n_sort(&k, ROWS, 0, false, NULL), 1, 3, aggs, 0);
    ordered->u.group.ordered = true;
    kit_expect(&k, ordered, "~|2|21|201 1|3|9|5~4 2|3|47|10307 ");
    /* FILTER, DISTINCT, ORDER BY inside. */
    static const Cell more[] = {I(1), I(3), I(1), I(1), I(2), I(2),
                                I(1), I(3), I(2), I(2), I(1), I(2)};
    PlanAgg filtered = agg_on(&k, &chain_def, 1);
    filtered.filter = X(&k, PX_LT, x_col(&k, 1), x_int(&k, 3));
    PlanAgg distinct = agg_on(&k, &chain_def, 1);
    distinct.distinct = true;
    PlanAgg sorted = agg_on(&k, &chain_def, 1);
    sorted.order_count = 1;
    sorted.order = ARENA_NEW(&k.arena, PlanSortKey);
    sorted.order[0] = (PlanSortKey){.expr = x_col(&k, 1), .desc = true, .nulls_last = true};
    PlanAgg three[] = {filtered, distinct, sorted};
    kit_expect(&k, n_group(&k, n_cells(&k, 2, 6, more), 1, 3, three, 0),
               "1|12|312|3321 2|22|2|22 ");
    kit_close(&k);
}

static void
distinct_and_compounds(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    static const Cell a[] = {I(3), I(1), N, R(1.0), I(2), N, I(3)};
    static const Cell b[] = {I(2), R(3.0), T("t"), I(2)};
    PlanNode *distinct = n_new(&k, PLAN_DISTINCT, 1, n_cells(&k, 1, 7, a));
    distinct->u.distinct.key_columns = 1;
    distinct->u.distinct.collation = n_binary(&k, 1);
    kit_expect(&k, distinct, "3 1 ~ 2 ");
#define ARMS ((PlanNode *[]){n_cells(&k, 1, 7, a), n_cells(&k, 1, 4, b)})
    kit_expect(&k, n_compound(&k, SET_UNION_ALL, 2, ARMS), "3 1 ~ 1.0 2 ~ 3 2 3.0 t 2 ");
    kit_expect(&k, n_compound(&k, SET_UNION, 2, ARMS), "~ 1 2 3.0 t ");
    kit_expect(&k, n_compound(&k, SET_EXCEPT, 2, ARMS), "~ 1 ");
    kit_expect(&k, n_compound(&k, SET_INTERSECT, 2, ARMS), "2 3 ");
    kit_close(&k);
}

static void
subqueries(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    /* Uncorrelated. */
    static const Cell some[] = {I(2), I(4), N};
    PlanSub *in = x_plan_sub(&k, n_cells(&k, 1, 2, some));
    PlanExpr *column = x_col(&k, 0);
    kit_expect(&k, n_filter(&k, numbers(&k, 1, 5), x_sub(&k, PX_IN_SUB, in, 1, &column)), "2 4 ");
    PlanSub *in_null = x_plan_sub(&k, n_cells(&k, 1, 3, some));
    kit_expect(&k, PROJECT(&k, numbers(&k, 1, 2), x_sub(&k, PX_IN_SUB, in_null, 1, &column)),
               "~ 1 ");
    PlanSub *in_none = x_plan_sub(&k, n_cells(&k, 1, 0, some));
    PlanExpr *null = x_null(&k);
    kit_expect(&k, PROJECT(&k, numbers(&k, 1, 1), x_sub(&k, PX_IN_SUB, in_none, 1, &null)), "0 ");
    PlanSub *scalar = x_plan_sub(&k, numbers(&k, 7, 9));
    kit_expect(&k, PROJECT(&k, numbers(&k, 1, 2), x_sub(&k, PX_SCALAR, scalar, 0, NULL)), "7 7 ");
    PlanSub *none = x_plan_sub(&k, numbers(&k, 7, 6));
    kit_expect(&k, PROJECT(&k, numbers(&k, 1, 2), x_sub(&k, PX_SCALAR, none, 0, NULL)), "~ ~ ");
    PlanSub *exists = x_plan_sub(&k, numbers(&k, 7, 6));
    PlanExpr *not_exists = x_sub(&k, PX_EXISTS, exists, 0, NULL);
    not_exists->flags |= PX_FLAG_NOT;
    kit_expect(&k, PROJECT(&k, numbers(&k, 1, 1), not_exists), "1 ");
    /* Correlated: the largest of 1..4 below the outer value. */
    u32 reg = k.regs++;
    PlanNode *below = n_filter(&k, numbers(&k, 1, 4), X(&k, PX_LT, x_col(&k, 0), x_reg(&k, reg)));
    PlanAgg max[] = {agg_on(&k, &max_def, 0)};
    PlanSub *correlated = x_plan_sub(&k, n_group(&k, below, 0, 1, max, 0));
    x_bind(&k, correlated, reg, x_col(&k, 0));
    kit_expect(&k, PROJECT(&k, numbers(&k, 1, 6), x_sub(&k, PX_SCALAR, correlated, 0, NULL)),
               "~ 1 2 3 4 4 ");
    u32 reg2 = k.regs++;
    PlanSub *row_in = x_plan_sub(
        &k, n_filter(&k, numbers(&k, 1, 4), X(&k, PX_GT, x_col(&k, 0), x_reg(&k, reg2))));
    x_bind(&k, row_in, reg2, x_int(&k, 2));
    kit_expect(&k, n_filter(&k, numbers(&k, 1, 6), x_sub(&k, PX_IN_SUB, row_in, 1, &column)),
               "3 4 ");
    kit_close(&k);
}

static void
rows_in_subqueries_with_nulls(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    static const Cell rows[] = {I(1), I(2), I(3), N};
    static const Cell probes[] = {I(1), I(2), I(1), I(3), I(3), I(9), I(4), N, N, I(2)};
    PlanSub *in = x_plan_sub(&k, n_cells(&k, 2, 2, rows));
    PlanExpr *args[] = {x_col(&k, 0), x_col(&k, 1)};
    kit_expect(&k, PROJECT(&k, n_cells(&k, 2, 5, probes), x_sub(&k, PX_IN_SUB, in, 2, args)),
               "1 0 ~ 0 ~ ");
    kit_close(&k);
}

static void
recursions(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    /* n, n + 1 while n < 5; and 2n, 2n + 1 below 8: breadth first, or depth first by ORDER BY. */
    u32 number = k.materials++;
    PlanNode *current = n_new(&k, PLAN_CTE_SCAN, 1, NULL);
    current->u.cte_scan.material_no = number;
    PlanNode *more = n_filter(&k, current, X(&k, PX_LT, x_col(&k, 0), x_int(&k, 5)));
    PlanNode *recursion = n_new(&k, PLAN_RECURSIVE, 1, NULL);
    recursion->u.recursive.material_no = number;
    recursion->u.recursive.initial = numbers(&k, 1, 1);
    recursion->u.recursive.step = PROJECT(&k, more, X(&k, PX_ADD, x_col(&k, 0), x_int(&k, 1)));
    kit_expect(&k, recursion, "1 2 3 4 5 ");
    recursion->u.recursive.limit = x_int(&k, 2);
    recursion->u.recursive.offset = x_int(&k, 1);
    kit_expect(&k, recursion, "2 3 ");

    u32 tree = k.materials++;
    PlanNode *parent = n_new(&k, PLAN_CTE_SCAN, 1, NULL);
    parent->u.cte_scan.material_no = tree;
    PlanNode *pair = n_loop(&k, JOIN_INNER,
                            n_filter(&k, parent, X(&k, PX_LT, x_col(&k, 0), x_int(&k, 4))),
                            numbers(&k, 0, 1), NULL);
    PlanExpr *child = X(&k, PX_ADD, X(&k, PX_MUL, x_col(&k, 0), x_int(&k, 2)), x_col(&k, 1));
    PlanNode *walk = n_new(&k, PLAN_RECURSIVE, 1, NULL);
    walk->u.recursive.material_no = tree;
    walk->u.recursive.initial = numbers(&k, 1, 1);
    walk->u.recursive.step = PROJECT(&k, pair, child);
    kit_expect(&k, walk, "1 2 3 4 5 6 7 ");
    walk->u.recursive.key_count = 1;
    walk->u.recursive.key = ARENA_NEW(&k.arena, PlanSortKey);
    walk->u.recursive.key[0] = (PlanSortKey){
        .expr = x_col(&k, 0), .collation = &collation_binary, .desc = true};
    kit_expect(&k, walk, "1 3 7 6 2 5 4 ");

    /* UNION: the circle 0 -> 1 -> 2 -> 0 ends. */
    u32 circle = k.materials++;
    PlanNode *at = n_new(&k, PLAN_CTE_SCAN, 1, NULL);
    at->u.cte_scan.material_no = circle;
    PlanNode *round = n_new(&k, PLAN_RECURSIVE, 1, NULL);
    round->u.recursive.material_no = circle;
    round->u.recursive.initial = numbers(&k, 0, 0);
    round->u.recursive.step = PROJECT(
        &k, at, X(&k, PX_REM, X(&k, PX_ADD, x_col(&k, 0), x_int(&k, 1)), x_int(&k, 3)));
    round->u.recursive.distinct = true;
    round->u.recursive.collation = n_binary(&k, 1);
    kit_expect(&k, round, "0 1 2 ");
    kit_close(&k);
}

static void
materials_are_shared(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    u32 number = k.materials++;
    PlanNode *material = n_new(&k, PLAN_MATERIAL, 1, numbers(&k, 1, 3));
    material->u.material.material_no = number;
    k.material[number] = material;
    PlanNode *one = n_new(&k, PLAN_CTE_SCAN, 1, NULL), *two = n_new(&k, PLAN_CTE_SCAN, 1, NULL);
    one->u.cte_scan.material_no = two->u.cte_scan.material_no = number;
    PlanExpr *less = X(&k, PX_LT, x_col(&k, 0), x_col(&k, 1));
    kit_expect(&k, n_loop(&k, JOIN_INNER, one, two, less), "1|2 1|3 2|3 ");
    kit_close(&k);
}

static const MakeColumn table_columns[] = {{.name = "k", .affinity = AFFINITY_INTEGER},
                                           {.name = "v", .affinity = AFFINITY_TEXT}};

/* Rows 1..n: k = rowid % 4 (NULL for 0), v = a letter. */
static TableDef *
small_table(Kit *k, i64 rows, bool indexed)
{
    TableDef *table = make_table(&k->arena, "t", table_columns, 2);
    table->store = k->store;
    assert_int_equal(store_tree_create(k->txn, STORE_TREE_INT, &table->tree), OK);
    if (indexed) {
        static const MakeKey key = {.column = 0};
        table->index = ARENA_NEW(&k->arena, IndexDef *);
        table->index[0] = make_index(&k->arena, table, "i", false, &key, 1);
        assert_int_equal(store_tree_create(k->txn, STORE_TREE_BYTES, &table->index[0]->tree), OK);
        table->index_count = 1;
    }
    for (i64 i = 1; i <= rows; i++) {
        char letter[2] = {(char)('a' + (i - 1) % 26), 0};
        Cell row[] = {i % 4 == 0 ? cell_null() : cell_int(i % 4), cell_text(letter, 1)};
        kit_put(k, table, i, row);
    }
    return table;
}

static void
scans(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    TableDef *table = small_table(&k, 9, true);
    kit_expect(&k, n_scan(&k, table), "1|a 2|b 3|c ~|d 1|e 2|f 3|g ~|h 1|i ");
    PlanNode *back = n_scan(&k, table);
    back->u.scan.backwards = true;
    kit_expect(&k, back, "1|i ~|h 3|g 2|f 1|e ~|d 3|c 2|b 1|a ");
    PlanNode *filtered = n_scan(&k, table);
    filtered->u.scan.filter = X(&k, PX_EQ, x_col(&k, 0), x_int(&k, 3));
    kit_expect(&k, filtered, "3|c 3|g ");
    PlanNode *point = n_scan(&k, table);
    n_scan_eq(&k, point, x_cell(&k, cell_real(5.0)));
    kit_expect(&k, point, "1|e ");
    PlanNode *range = n_scan(&k, table);
    range->u.scan.low = x_cell(&k, cell_real(2.5));
    range->u.scan.high = x_int(&k, 5);
    range->u.scan.high_inclusive = true;
    kit_expect(&k, range, "3|c ~|d 1|e ");
    /* By index: value order, rowid inside. */
    PlanNode *index = n_scan(&k, table);
    index->u.scan.index = table->index[0];
    kit_expect(&k, index, "~|d ~|h 1|a 1|e 1|i 2|b 2|f 3|c 3|g ");
    PlanNode *equal = n_scan(&k, table);
    equal->u.scan.index = table->index[0];
    n_scan_eq(&k, equal, x_int(&k, 1));
    kit_expect(&k, equal, "1|a 1|e 1|i ");
    PlanNode *is_null = n_scan(&k, table);
    is_null->u.scan.index = table->index[0];
    n_scan_eq(&k, is_null, x_null(&k));
    kit_expect(&k, is_null, "");
    is_null->u.scan.eq[0].null_safe = true;
    kit_expect(&k, is_null, "~|d ~|h ");
    PlanNode *list = n_scan(&k, table);
    list->u.scan.index = table->index[0];
    n_scan_eq(&k, list, NULL);
    list->u.scan.eq[0].in_count = 4;
    list->u.scan.eq[0].in_list = x_copy(
        &k, 4, (PlanExpr *[]){x_int(&k, 3), x_null(&k), x_cell(&k, cell_real(1.0)), x_int(&k, 3)});
    kit_expect(&k, list, "1|a 1|e 1|i 3|c 3|g ");
    list->u.scan.backwards = true;
    kit_expect(&k, list, "3|g 3|c 1|i 1|e 1|a ");
    PlanNode *by_sub = n_scan(&k, table);
    by_sub->u.scan.index = table->index[0];
    n_scan_eq(&k, by_sub, NULL);
    by_sub->u.scan.eq[0].in_sub = x_plan_sub(&k, numbers(&k, 2, 9));
    kit_expect(&k, by_sub, "2|b 2|f 3|c 3|g ");
    PlanNode *covering = n_scan(&k, table);
    covering->columns = 2;
    covering->u.scan.index = table->index[0];
    covering->u.scan.covering = true;
    covering->u.scan.column[1] = COLUMN_ROWID;
    covering->u.scan.low = x_int(&k, 2);
    covering->u.scan.low_inclusive = true;
    kit_expect(&k, covering, "2|2 2|6 3|3 3|7 ");
    /* An inner side by key. */
    u32 reg = k.regs++;
    PlanNode *inner = n_scan(&k, table);
    n_scan_eq(&k, inner, x_reg(&k, reg));
    PlanNode *join = n_loop(&k, JOIN_INNER, numbers(&k, 8, 12), inner, NULL);
    n_loop_bind(&k, join, reg, 0);
    kit_expect(&k, join, "8|~|h 9|1|i ");
    PlanNode *count = n_new(&k, PLAN_COUNT, 1, NULL);
    count->u.count.table = table;
    count->u.count.tree = table->tree;
    kit_expect(&k, count, "9 ");
    kit_close(&k);
}

static void
or_scans_give_each_row_once(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    TableDef *table = small_table(&k, 9, true);
    PlanNode *term[2];
    for (u32 i = 0; i < 2; i++) {
        term[i] = n_scan(&k, table);
        term[i]->columns = 3;
        term[i]->u.scan.column = ARENA_NEW_ARRAY(&k.arena, u16, 3);
        term[i]->u.scan.column[1] = 1;
        term[i]->u.scan.column[2] = COLUMN_ROWID;
    }
    term[0]->u.scan.index = table->index[0];
    n_scan_eq(&k, term[0], x_int(&k, 3));
    term[1]->u.scan.high = x_int(&k, 4);
    PlanNode *either = n_new(&k, PLAN_OR_SCAN, 3, NULL);
    either->u.or_scan.table = table;
    either->u.or_scan.term_count = 2;
    either->u.or_scan.term = term;
    either->u.or_scan.key_first = 2;
    either->u.or_scan.key_count = 1;
    kit_expect(&k, either, "3|c|3 3|g|7 1|a|1 2|b|2 ");
    kit_close(&k);
}

static void
many_rows(void **state)
{
    (void)state;
    Kit k;
    kit_open(&k);
    TableDef *table = small_table(&k, 5000, true);
    PlanAgg aggs[] = {{.def = &count_def}};
    kit_expect(&k, n_group(&k, n_scan(&k, table), 1, 1, aggs, 0), "~|1250 1|1250 2|1250 3|1250 ");
    kit_expect(
        &k, n_limit(&k, n_sort(&k, n_scan(&k, table), 1, true, x_int(&k, 3)), x_int(&k, 3), NULL),
        "2|z ~|z 2|z ");
    PlanNode *join = n_hash(&k, JOIN_INNER, n_scan(&k, table), 0, numbers(&k, 1, 2), 0, NULL);
    kit_expect(&k, n_group(&k, join, 0, 1, aggs, 0), "2500 ");
    kit_close(&k);
}

static void
kit_remove(Kit *k, TableDef *table, i64 rowid)
{
    u8 key[TABLE_KEY_BYTES];
    StoreVerdict verdict;
    table_key_put(rowid, key);
    assert_int_equal(store_delete(k->txn, table->tree, SLICE(key, TABLE_KEY_BYTES), &verdict), OK);
}

/* Step to the end; behind row `at` rows 5 and 6 go, row 30 comes, and the reader is tripped. */
static void
check_trip(Kit *k, PlanNode *root, u32 batch_rows, u32 at, const char *expected)
{
    ErrMsg msg = {0};
    Exec *exec;
    StoreTxn *txn[3] = {k->txn, k->txn, k->txn};
    TableDef *table = small_table(k, 9, false);
    for (PlanNode *node = root; node != NULL; node = node->input) {
        if (node->kind == PLAN_SCAN) node->u.scan.table = table;
        if (node->right != NULL && node->right->kind == PLAN_SCAN) {
            node->right->u.scan.table = table;
        }
    }
    k->env.batch_rows = batch_rows;
    assert_int_equal(exec_open(kit_plan(k, root), &k->env, &exec, &msg), OK);
    assert_int_equal(exec_start(exec, txn, NULL, 0), OK);
    buf_clear(&k->out);
    u32 shown = 0;
    for (bool row = true; row;) {
        assert_int_equal(exec_step(exec, &row), OK);
        if (!row) break;
        kit_print_row(&k->out, exec_row(exec), root->columns);
        if (++shown != at) continue;
        assert_true(exec_reads_tree(exec, k->store, table->tree));
        static const Cell late[] = {I(7), T("late")};
        kit_remove(k, table, 5);
        kit_remove(k, table, 6);
        kit_put(k, table, 30, late);
        exec_trip(exec);
    }
    assert_int_equal(buf_append_byte(&k->out, 0), OK);
    assert_string_equal((const char *)k->out.p, expected);
    assert_false(exec_is_running(exec));
    exec_close(exec);
    k->env.batch_rows = 0;
}

/* What a tripped reader shows is what the data are, whatever it had read ahead. */
static void
trips_show_the_present(void **state)
{
    (void)state;
    static const u32 sizes[] = {0, 1, 2, 3, 2048};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        Kit k;
        kit_open(&k);
        TableDef *table = small_table(&k, 1, false);
        check_trip(&k, n_scan(&k, table), sizes[i], 3, "1|a 2|b 3|c ~|d 3|g ~|h 1|i 7|late ");
        check_trip(&k, n_scan(&k, table), sizes[i], 5, "1|a 2|b 3|c ~|d 1|e 3|g ~|h 1|i 7|late ");
        PlanNode *back = n_scan(&k, table);
        back->u.scan.backwards = true;
        check_trip(&k, back, sizes[i], 2, "1|i ~|h 3|g ~|d 3|c 2|b 1|a ");
        PlanExpr *known = X(&k, PX_NOT_NULL, x_col(&k, 0));
        PlanNode *some = n_limit(&k,
                                 PROJECT(&k, n_filter(&k, n_scan(&k, table), known), x_col(&k, 1)),
                                 x_int(&k, 5), x_int(&k, 1));
        check_trip(&k, some, sizes[i], 2, "b c g i late ");
        PlanNode *join = n_loop(&k, JOIN_INNER, numbers(&k, 1, 2), n_scan(&k, table), NULL);
        check_trip(&k, join, sizes[i], 4,
                   "1|1|a 1|2|b 1|3|c 1|~|d 1|3|g 1|~|h 1|1|i 1|7|late "
                   "2|1|a 2|2|b 2|3|c 2|~|d 2|3|g 2|~|h 2|1|i 2|7|late ");
        PlanNode *outer = n_loop(&k, JOIN_INNER, n_scan(&k, table), numbers(&k, 1, 2), NULL);
        check_trip(&k, outer, sizes[i], 7,
                   "1|a|1 1|a|2 2|b|1 2|b|2 3|c|1 3|c|2 ~|d|1 ~|d|2 3|g|1 3|g|2 ~|h|1 ~|h|2 "
                   "1|i|1 1|i|2 7|late|1 7|late|2 ");
        PlanNode *probe = n_hash(&k, JOIN_LEFT, n_scan(&k, table), 0, numbers(&k, 1, 2), 0, NULL);
        check_trip(&k, probe, sizes[i], 1, "1|a|1 2|b|2 3|c|~ ~|d|~ 3|g|~ ~|h|~ 1|i|1 7|late|~ ");
        PlanNode *sorted = n_sort(&k, n_scan(&k, table), 1, true, NULL);
        check_trip(&k, sorted, sizes[i], 1, "1|i ~|h 3|g 2|f 1|e ~|d 3|c 2|b 1|a ");
        kit_close(&k);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_filter_project_limit),
        cmocka_unit_test(an_error_belongs_to_its_row),
        cmocka_unit_test(loop_joins),
        cmocka_unit_test(hash_joins),
        cmocka_unit_test(sorting_is_stable),
        cmocka_unit_test(groups),
        cmocka_unit_test(distinct_and_compounds),
        cmocka_unit_test(subqueries),
        cmocka_unit_test(rows_in_subqueries_with_nulls),
        cmocka_unit_test(recursions),
        cmocka_unit_test(materials_are_shared),
        cmocka_unit_test(scans),
        cmocka_unit_test(or_scans_give_each_row_once),
        cmocka_unit_test(many_rows),
        cmocka_unit_test(trips_show_the_present),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
