/*
 * explain.c -- EXPLAIN and EXPLAIN ANALYZE of statements that are planned.
 *
 * EXPLAIN lists the program: for each operator, inputs first, the expressions it evaluates and then
 * the operator itself, in the columns that SQLite's listing has.  Registers are numbered for the
 * listing alone.  EXPLAIN ANALYZE runs the statement, with all that it changes, and shows for each
 * operator what it did and why it was chosen.  Both read the operators of the opened statement, so
 * that what is shown is what runs.  Bodies of triggers are statements of their own and not shown.
 */
#include "session/session__impl.h"

static const PlanColumn program_columns[] = {{.name = "addr"}, {.name = "opcode"}, {.name = "p1"},
                                             {.name = "p2"},   {.name = "p3"},     {.name = "p4"},
                                             {.name = "p5"},   {.name = "comment"}};

static const PlanColumn analyze_columns[] = {
    {.name = "id"},    {.name = "parent"},   {.name = "detail"},  {.name = "rows"},
    {.name = "runs"},  {.name = "estimate"}, {.name = "time_us"}, {.name = "pages"},
    {.name = "spill"}, {.name = "why"}};

void
explain__describe(Stmt *stmt)
{
    bool analyze = stmt->explain == AST_EXPLAIN_ANALYZE;
    stmt->column = analyze ? analyze_columns : program_columns;
    stmt->column_count = analyze ? COUNT_OF(analyze_columns) : COUNT_OF(program_columns);
}

static const char *
kind_name(u8 kind)
{
    static const char *const names[] = {[PLAN_ONE_ROW] = "OneRow",
                                        [PLAN_VALUES] = "Values",
                                        [PLAN_SCAN] = "Scan",
                                        [PLAN_OR_SCAN] = "OrScan",
                                        [PLAN_FILTER] = "Filter",
                                        [PLAN_PROJECT] = "Project",
                                        [PLAN_LOOP_JOIN] = "LoopJoin",
                                        [PLAN_HASH_JOIN] = "HashJoin",
                                        [PLAN_SORT] = "Sort",
                                        [PLAN_LIMIT] = "Limit",
                                        [PLAN_GROUP] = "Group",
                                        [PLAN_DISTINCT] = "Distinct",
                                        [PLAN_COMPOUND] = "Compound",
                                        [PLAN_MATERIAL] = "Material",
                                        [PLAN_CTE_SCAN] = "CteScan",
                                        [PLAN_RECURSIVE] = "Recursive",
                                        [PLAN_WINDOW] = "Window",
                                        [PLAN_COUNT] = "Count",
                                        [PLAN_MIN_MAX] = "MinMax",
                                        [PLAN_TABLE_FUNC] = "TableFunction",
                                        [PLAN_HOST_SCAN] = "VirtualScan"};
    return kind < COUNT_OF(names) ? names[kind] : "Node";
}

static Cell
text_of(const char *text)
{
    return text == NULL ? cell_null() : cell_text(text, strlen(text));
}

/* Rows that the planner reckoned with. */
static i64
estimate_of(const PlanNode *node)
{
    if (!(node->rows > 0)) return 0;
    return node->rows >= 9e18 ? I64_MAX : (i64)(node->rows + 0.5);
}

/* ---- the tree of operators ---- */

typedef struct Tree {
    Stmt *stmt;
    u32 count;
    const PlanNode **node; /* By number; NULL: it is not part of this statement's run. */
    i32 *parent;           /* By number; -1: a root. */
} Tree;

static void
set_parent(Tree *tree, const PlanNode *child, u32 parent)
{
    if (child != NULL && child->number < tree->count) tree->parent[child->number] = (i32)parent;
}

static void
set_parents(Tree *tree, const PlanNode *node)
{
    u32 number = node->number;
    set_parent(tree, node->input, number);
    set_parent(tree, node->right, number);
    switch ((PlanKind)node->kind) {
    case PLAN_OR_SCAN:
        for (u32 i = 0; i < node->u.or_scan.term_count; i++)
            set_parent(tree, node->u.or_scan.term[i], number);
        break;
    case PLAN_COMPOUND:
        for (u32 i = 0; i < node->u.compound.arm_count; i++)
            set_parent(tree, node->u.compound.arm[i], number);
        break;
    case PLAN_RECURSIVE:
        set_parent(tree, node->u.recursive.initial, number);
        set_parent(tree, node->u.recursive.step, number);
        break;
    default: break;
    }
}

static Err
tree_make(Tree *tree, Stmt *stmt, Arena *arena)
{
    *tree = (Tree){.stmt = stmt, .count = stmt->plan->node_count};
    u32 room = MAX_OF(tree->count, 1u);
    tree->node = ARENA_NEW_ARRAY(arena, const PlanNode *, room);
    tree->parent = ARENA_NEW_ARRAY(arena, i32, room);
    if (tree->node == NULL || tree->parent == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < tree->count; i++) {
        tree->node[i] = exec_node_plan(stmt->exec, i);
        tree->parent[i] = -1;
    }
    for (u32 i = 0; i < tree->count; i++) {
        if (tree->node[i] != NULL) set_parents(tree, tree->node[i]);
    }
    return OK;
}

/* Is it the root of the statement itself, not of a subquery? */
static bool
is_main_root(const Tree *tree, const PlanNode *node)
{
    const Plan *plan = tree->stmt->plan;
    return node == plan->root || (plan->write != NULL && node == plan->write->source);
}

/* ---- EXPLAIN ANALYZE ---- */

/* Why an operator without words of its own is there. */
static const char *
why_kind(const PlanNode *node)
{
    switch ((PlanKind)node->kind) {
    case PLAN_SORT: return "no index gives this order: the rows are collected and sorted";
    case PLAN_GROUP:
        if (node->u.group.key_count == 0) return "one row is made of all";
        return node->u.group.ordered ? "the rows come group by group, none is kept"
                                     : "the rows come in no order of the groups: a hash table "
                                       "holds them";
    case PLAN_DISTINCT:
        return node->u.distinct.ordered ? "equal rows come one after another"
                                        : "a hash table tells which rows were seen";
    case PLAN_HASH_JOIN:
        return "reading the right side once into a hash table costs less than looking it up for "
               "each row of the left";
    case PLAN_LOOP_JOIN: return "the right side is run for each row of the left";
    case PLAN_OR_SCAN: return "each part of the OR is looked up by itself";
    case PLAN_MATERIAL: return "read several times: the rows are kept";
    case PLAN_COUNT: return "only the number of rows is wanted";
    case PLAN_WINDOW: return "rows of a partition are collected for the frames";
    case PLAN_RECURSIVE: return "runs until no new row comes";
    default: return NULL;
    }
}

static Err
add_node(Tree *tree, const PlanNode *node, u32 parent_id, u32 *next_id)
{
    Stmt *stmt = tree->stmt;
    ExecNodeCounters seen;
    exec_node_counters(stmt->exec, node->number, &seen);
    const char *why = node->why != NULL ? node->why : why_kind(node);
    u32 id = ++*next_id;
    const Cell cells[] = {
        cell_int(id),
        cell_int(parent_id),
        text_of(node->eqp != NULL ? node->eqp : kind_name(node->kind)),
        cell_int((i64)seen.rows),
        cell_int((i64)MAX_OF(seen.rewinds, (u64)1)),
        cell_int(estimate_of(node)),
        cell_int((i64)(seen.time_ns / 1000)),
        cell_int((i64)seen.pages),
        cell_int((i64)seen.spill_bytes),
        text_of(why),
    };
    Err err = rows__add(stmt, cells);
    for (u32 i = 0; err == OK && i < tree->count; i++) {
        if (tree->node[i] != NULL && tree->parent[i] == (i32)node->number)
            err = add_node(tree, tree->node[i], id, next_id);
    }
    return err;
}

static Err
add_write(Tree *tree, u32 *next_id)
{
    static const char *const words[] = {
        [WRITE_INSERT] = "INSERT INTO", [WRITE_UPDATE] = "UPDATE", [WRITE_DELETE] = "DELETE FROM"};
    Stmt *stmt = tree->stmt;
    const PlanWrite *write = stmt->plan->write;
    char *detail = arena_printf(&stmt->run, "%s %s", words[write->kind], write->table->name);
    if (detail == NULL) return ERR_NOMEM;
    Cell cells[COUNT_OF(analyze_columns)] = {cell_int(++*next_id), cell_int(0), text_of(detail),
                                             cell_int(exec_rows_changed(stmt->exec)), cell_int(1)};
    cells[9] = text_of(write->truncate  ? "no WHERE, no triggers: the trees are cleared at once"
                       : write->collect ? "the scan could meet its own changes: all rows are "
                                          "found before the first one is changed"
                                        : "each row is changed when it is found");
    return rows__add(stmt, cells);
}

Err
explain__report(Stmt *stmt)
{
    Tree tree;
    Arena arena;
    u32 next_id = 0, top = 0;
    arena_init(&arena, NULL);
    Err err = tree_make(&tree, stmt, &arena);
    if (err == OK && stmt->plan->write != NULL) {
        err = add_write(&tree, &next_id);
        top = next_id;
    }
    for (u32 pass = 0; pass < 2; pass++) {
        for (u32 i = 0; err == OK && i < tree.count; i++) {
            const PlanNode *node = tree.node[i];
            if (node == NULL || tree.parent[i] >= 0) continue;
            if (is_main_root(&tree, node) == (pass == 0))
                err = add_node(&tree, node, top, &next_id);
        }
    }
    arena_free(&arena);
    return err == OK ? OK : session__fail(stmt->session, err, NULL);
}

/* ---- EXPLAIN ---- */

typedef struct Listing {
    Tree tree;
    i64 address;
    i64 registers;
} Listing;

static Err
add_line(Listing *l, const char *opcode, i64 p1, i64 p2, i64 p3, Cell p4, i64 p5,
         const char *comment)
{
    const Cell cells[] = {cell_int(l->address++), text_of(opcode), cell_int(p1),
                          cell_int(p2),           cell_int(p3),    p4,
                          cell_int(p5),           text_of(comment)};
    return rows__add(l->tree.stmt, cells);
}

static const char *
op_name(u8 op)
{
    static const char *const names[] = {[PX_CONST] = "Constant",
                                        [PX_PARAM] = "Variable",
                                        [PX_COLUMN] = "Column",
                                        [PX_REG] = "Register",
                                        [PX_NEG] = "Negative",
                                        [PX_BIT_NOT] = "BitNot",
                                        [PX_NOT] = "Not",
                                        [PX_IS_NULL] = "IsNull",
                                        [PX_NOT_NULL] = "NotNull",
                                        [PX_IS_TRUE] = "IsTrue",
                                        [PX_IS_FALSE] = "IsFalse",
                                        [PX_IS_NOT_TRUE] = "IsNotTrue",
                                        [PX_IS_NOT_FALSE] = "IsNotFalse",
                                        [PX_PLUS] = "Plus",
                                        [PX_CAST] = "Cast",
                                        [PX_AFFINITY] = "Affinity",
                                        [PX_ADD] = "Add",
                                        [PX_SUB] = "Subtract",
                                        [PX_MUL] = "Multiply",
                                        [PX_DIV] = "Divide",
                                        [PX_REM] = "Remainder",
                                        [PX_BIT_AND] = "BitAnd",
                                        [PX_BIT_OR] = "BitOr",
                                        [PX_SHL] = "ShiftLeft",
                                        [PX_SHR] = "ShiftRight",
                                        [PX_CONCAT] = "Concat",
                                        [PX_EQ] = "Eq",
                                        [PX_NE] = "Ne",
                                        [PX_LT] = "Lt",
                                        [PX_LE] = "Le",
                                        [PX_GT] = "Gt",
                                        [PX_GE] = "Ge",
                                        [PX_IS] = "Is",
                                        [PX_IS_NOT] = "IsNot",
                                        [PX_AND] = "And",
                                        [PX_OR] = "Or",
                                        [PX_BETWEEN] = "Between",
                                        [PX_IN_LIST] = "InList",
                                        [PX_IN_SUB] = "InSubquery",
                                        [PX_EXISTS] = "Exists",
                                        [PX_SCALAR] = "Subquery",
                                        [PX_SUB_COLUMN] = "SubqueryColumn",
                                        [PX_CASE] = "Case",
                                        [PX_FUNC] = "Function",
                                        [PX_COALESCE] = "Coalesce",
                                        [PX_ROW_COMPARE] = "RowCompare",
                                        [PX_RAISE] = "Raise"};
    return op < COUNT_OF(names) && names[op] != NULL ? names[op] : "Expression";
}

/* What an instruction says beside its operands. */
static Cell
operand_of(const PlanExpr *e)
{
    switch ((PlanOp)e->op) {
    case PX_CONST: return e->u.constant;
    case PX_FUNC: return text_of(e->u.func.def->name);
    case PX_EQ:
    case PX_NE:
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE:
    case PX_IS:
    case PX_IS_NOT:
    case PX_IN_LIST: return text_of(e->collation == NULL ? NULL : e->collation->name);
    default: return cell_null();
    }
}

/* The expression's instructions; *register_out: where its value comes to be. */
static Err
list_expr(Listing *l, const PlanExpr *e, i64 *register_out)
{
    i64 first = 0, second = 0, at = 0;
    Err err = OK;
    *register_out = 0;
    if (e == NULL) return OK;
    for (u32 i = 0; err == OK && i < e->arg_count; i++) {
        err = list_expr(l, e->arg[i], &at);
        if (i == 0) first = at;
        if (i == 1) second = at;
    }
    bool numbered = e->op == PX_PARAM || e->op == PX_COLUMN || e->op == PX_REG;
    if (numbered) first = (i64)e->u.number;
    if (e->op == PX_IN_SUB || e->op == PX_EXISTS || e->op == PX_SCALAR)
        second = (i64)e->u.sub->root->number + 1;
    *register_out = ++l->registers;
    if (err != OK) return err;
    return add_line(l, op_name(e->op), first, second, *register_out, operand_of(e),
                    (e->flags & PX_FLAG_NOT) != 0, NULL);
}

static Err
list_many(Listing *l, PlanExpr *const *list, u32 count)
{
    Err err = OK;
    i64 at;
    for (u32 i = 0; err == OK && list != NULL && i < count; i++)
        err = list_expr(l, list[i], &at);
    return err;
}

static Err
list_part(Listing *l, const PlanKeyPart *part)
{
    i64 at;
    Err err = list_expr(l, part->value, &at);
    return err == OK ? list_many(l, part->in_list, part->in_count) : err;
}

static Err
list_scan(Listing *l, const PlanScan *scan)
{
    Err err = OK;
    i64 at;
    for (u32 i = 0; err == OK && i < scan->eq_count; i++)
        err = list_part(l, &scan->eq[i]);
    if (err == OK) err = list_expr(l, scan->low, &at);
    if (err == OK) err = list_expr(l, scan->high, &at);
    return err == OK ? list_expr(l, scan->filter, &at) : err;
}

static Err
list_keys(Listing *l, const PlanSortKey *key, u32 count)
{
    Err err = OK;
    i64 at;
    for (u32 i = 0; err == OK && i < count; i++)
        err = list_expr(l, key[i].expr, &at);
    return err;
}

static Err
list_group(Listing *l, const PlanNode *node)
{
    Err err = list_many(l, node->u.group.key, node->u.group.key_count);
    i64 at;
    for (u32 i = 0; err == OK && i < node->u.group.agg_count; i++) {
        const PlanAgg *agg = &node->u.group.agg[i];
        err = list_many(l, agg->arg, agg->arg_count);
        if (err == OK) err = list_expr(l, agg->filter, &at);
        if (err == OK) err = add_line(l, "Aggregate", 0, 0, 0, text_of(agg->def->name), 0, NULL);
    }
    return err;
}

/* The expressions that the operator evaluates by itself. */
static Err
list_own(Listing *l, const PlanNode *node)
{
    i64 at;
    switch ((PlanKind)node->kind) {
    case PLAN_VALUES: return list_many(l, node->u.values.row[0], node->columns);
    case PLAN_SCAN: return list_scan(l, &node->u.scan);
    case PLAN_OR_SCAN: return list_expr(l, node->u.or_scan.filter, &at);
    case PLAN_FILTER: return list_expr(l, node->u.filter.condition, &at);
    case PLAN_PROJECT: return list_many(l, node->u.project.expr, node->columns);
    case PLAN_LOOP_JOIN: return list_expr(l, node->u.loop.condition, &at);
    case PLAN_HASH_JOIN: {
        Err err = list_many(l, node->u.hash.probe_key, node->u.hash.key_count);
        if (err == OK) err = list_many(l, node->u.hash.build_key, node->u.hash.key_count);
        return err == OK ? list_expr(l, node->u.hash.condition, &at) : err;
    }
    case PLAN_SORT: return list_keys(l, node->u.sort.key, node->u.sort.key_count);
    case PLAN_GROUP: return list_group(l, node);
    case PLAN_TABLE_FUNC: {
        Err err = OK;
        for (u32 i = 0; err == OK && i < node->u.table_func.arg_count; i++)
            err = list_part(l, &node->u.table_func.arg[i].part);
        return err;
    }
    case PLAN_HOST_SCAN: {
        Err err = OK;
        for (u32 i = 0; err == OK && i < node->u.host_scan.arg_count; i++)
            err = list_part(l, &node->u.host_scan.arg[i].part);
        return err;
    }
    default: return OK;
    }
}

static Err
list_node(Listing *l, const PlanNode *node)
{
    Err err = OK;
    const Tree *tree = &l->tree;
    for (u32 i = 0; err == OK && i < tree->count; i++) {
        if (tree->node[i] != NULL && tree->parent[i] == (i32)node->number)
            err = list_node(l, tree->node[i]);
    }
    if (err == OK) err = list_own(l, node);
    if (err != OK) return err;
    char *comment = arena_printf(&tree->stmt->run, "about %llu rows",
                                 (unsigned long long)estimate_of(node));
    if (comment == NULL) return ERR_NOMEM;
    Cell detail = text_of(node->eqp);
    return add_line(l, kind_name(node->kind), (i64)node->number + 1,
                    node->input == NULL ? 0 : (i64)node->input->number + 1,
                    node->right == NULL ? 0 : (i64)node->right->number + 1, detail, 0, comment);
}

static Err
list_write(Listing *l)
{
    static const char *const words[] = {
        [WRITE_INSERT] = "Insert", [WRITE_UPDATE] = "Update", [WRITE_DELETE] = "Delete"};
    const PlanWrite *write = l->tree.stmt->plan->write;
    Err err = list_many(l, write->set_expr, write->set_count);
    if (err == OK) err = list_many(l, write->check, write->check_count);
    if (err != OK) return err;
    u32 source = write->source == NULL ? 0 : write->source->number + 1;
    return add_line(l, words[write->kind], 0, source, write->index_count,
                    text_of(write->table->name), 0, NULL);
}

Err
explain__list(Stmt *stmt)
{
    Listing l = {0};
    Arena arena;
    arena_init(&arena, NULL);
    Err err = tree_make(&l.tree, stmt, &arena);
    if (err == OK) err = add_line(&l, "Init", 0, 0, 0, cell_null(), 0, "begin at 1");
    /* Subqueries stand before what uses them. */
    for (u32 pass = 0; pass < 2; pass++) {
        for (u32 i = 0; err == OK && i < l.tree.count; i++) {
            const PlanNode *node = l.tree.node[i];
            if (node == NULL || l.tree.parent[i] >= 0) continue;
            if (is_main_root(&l.tree, node) == (pass == 1)) err = list_node(&l, node);
        }
    }
    if (err == OK && stmt->plan->write != NULL) err = list_write(&l);
    if (err == OK && stmt->plan->root != NULL)
        err = add_line(&l, "ResultRow", 0, stmt->plan->column_count, 0, cell_null(), 0, NULL);
    if (err == OK) err = add_line(&l, "Halt", 0, 0, 0, cell_null(), 0, NULL);
    arena_free(&arena);
    return err == OK ? OK : session__fail(stmt->session, err, NULL);
}

/* ---- commands ---- */

Err
explain__command(Stmt *stmt)
{
    static const PlanColumn query_plan[] = {
        {.name = "id"}, {.name = "parent"}, {.name = "notused"}, {.name = "detail"}};
    stmt->is_write = false;
    explain__describe(stmt);
    if (stmt->explain != AST_EXPLAIN_QUERY_PLAN) return OK;
    stmt->column = query_plan;
    stmt->column_count = COUNT_OF(query_plan);
    return OK;
}

Err
explain__list_command(Stmt *stmt)
{
    Listing l = {.tree = {.stmt = stmt}};
    if (stmt->explain == AST_EXPLAIN_QUERY_PLAN) return OK;
    Err err = add_line(&l, "Init", 0, 0, 0, cell_null(), 0, "begin at 1");
    if (err == OK)
        err = add_line(&l, "Command", 0, 0, 0, text_of(ast_statement_name(stmt->ast->kind)), 0,
                       NULL);
    if (err == OK) err = add_line(&l, "Halt", 0, 0, 0, cell_null(), 0, NULL);
    return err == OK ? OK : session__fail(stmt->session, err, NULL);
}
