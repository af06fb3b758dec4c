/*
 * compile.c -- from expression trees to programs.
 *
 * Slots are handed out like a stack: an instruction's temporaries stand above its result and are
 * free again after it.  The only recursion follows the tree, whose depth the binder has bounded;
 * the stack is checked besides.
 */
#include "exec/program.h"

#include "exec/exec__write.h"
#include "rt/task.h"

#define IN_LIST_SET_MIN 9 /* Shorter lists are compared one by one. */

typedef struct Compiler {
    Exec *exec;
    Ins *ins;
    u32 ins_count, ins_capacity;
    u32 top, top_max; /* Slots. */
    Cell *constant;
    u32 constant_count, constant_capacity;
    u32 once_count;
    u32 *column;
    u32 column_count, column_capacity;
    bool in_once;   /* Inside a subtree that is computed once as a whole. */
    bool condition; /* The expression at hand is only asked for its truth. */
} Compiler;

static Err compile_into(Compiler *c, const PlanExpr *expr, u32 slot);

static Err
grow(Arena *arena, void **array, u32 count, u32 *capacity, size_t item_bytes)
{
    if (count < *capacity) return OK;
    u32 wanted = *capacity == 0 ? 8 : *capacity * 2;
    void *bigger = arena_alloc(arena, (size_t)wanted * item_bytes);
    if (bigger == NULL) return ERR_NOMEM;
    if (count > 0) memcpy(bigger, *array, (size_t)count * item_bytes);
    *array = bigger;
    *capacity = wanted;
    return OK;
}

/* Append an instruction; *at_out (may be NULL) is its place, for patching jumps. */
static Err
emit(Compiler *c, Ins ins, u32 *at_out)
{
    void *array = c->ins;
    Err err = grow(&c->exec->arena, &array, c->ins_count, &c->ins_capacity, sizeof(Ins));
    if (err != OK) return err;
    c->ins = array;
    if (at_out != NULL) *at_out = c->ins_count;
    c->ins[c->ins_count++] = ins;
    return OK;
}

static void
patch(Compiler *c, u32 at)
{
    c->ins[at].target = c->ins_count;
}

static u32
slots_take(Compiler *c, u32 count)
{
    u32 first = c->top;
    c->top += count;
    c->top_max = MAX_OF(c->top_max, c->top);
    return first;
}

static Err
constant_add(Compiler *c, const Cell *value, Operand *out)
{
    void *array = c->constant;
    Err err = grow(&c->exec->arena, &array, c->constant_count, &c->constant_capacity, sizeof(Cell));
    if (err != OK) return err;
    c->constant = array;
    c->constant[c->constant_count] = *value;
    *out = OPERAND(AT_CONST, c->constant_count);
    c->constant_count++;
    return OK;
}

/* Remember that the row's column is read: a sorted set. */
static Err
column_add(Compiler *c, u32 column)
{
    u32 at = 0;
    while (at < c->column_count && c->column[at] < column) {
        at++;
    }
    if (at < c->column_count && c->column[at] == column) return OK;
    void *array = c->column;
    Err err = grow(&c->exec->arena, &array, c->column_count, &c->column_capacity, sizeof(u32));
    if (err != OK) return err;
    c->column = array;
    memmove(c->column + at + 1, c->column + at, (c->column_count - at) * sizeof(u32));
    c->column[at] = column;
    c->column_count++;
    return OK;
}

/* May the whole subtree be computed once a run? */
static bool
runs_once(const Compiler *c, const PlanExpr *expr)
{
    const u16 varying = PX_FLAG_READS_ROW | PX_FLAG_READS_REG | PX_FLAG_HAS_SUB;
    if (c->in_once || (expr->flags & varying) != 0 || expr->klass == PLAN_VOLATILE) return false;
    return expr->op != PX_RAISE;
}

/* The place of the value: leaves stand where they are, everything else goes to a new slot. */
static Err
compile(Compiler *c, const PlanExpr *expr, Operand *out)
{
    switch (expr->op) {
    case PX_CONST: return constant_add(c, &expr->u.constant, out);
    case PX_PARAM:
        ASSERT(expr->u.number >= 1);
        *out = OPERAND(AT_PARAM, expr->u.number - 1);
        return OK;
    case PX_COLUMN: *out = OPERAND(AT_ROW, expr->u.number); return column_add(c, expr->u.number);
    case PX_REG: *out = OPERAND(AT_REG, expr->u.number); return OK;
    default: break;
    }
    if (!runs_once(c, expr)) {
        u32 slot = slots_take(c, 1);
        *out = OPERAND(AT_SLOT, slot);
        return compile_into(c, expr, slot);
    }
    u32 once = c->once_count++;
    u32 jump = 0;
    *out = OPERAND(AT_ONCE, once);
    Err err = emit(c, (Ins){.op = INS_ONCE, .out = once}, &jump);
    if (err != OK) return err;
    c->in_once = true;
    u32 slot = slots_take(c, 1);
    err = compile_into(c, expr, slot);
    c->in_once = false;
    if (err != OK) return err;
    err = emit(c, (Ins){.op = INS_ONCE_SET, .out = once, .a = OPERAND(AT_SLOT, slot)}, NULL);
    if (err != OK) return err;
    patch(c, jump);
    return OK;
}

static Err
compile_unary(Compiler *c, const PlanExpr *expr, u32 slot, Ins ins)
{
    Err err = compile(c, expr->arg[0], &ins.a);
    if (err != OK) return err;
    ins.out = slot;
    return emit(c, ins, NULL);
}

static Err
compile_binary(Compiler *c, const PlanExpr *expr, u32 slot, Ins ins)
{
    ASSERT(expr->arg_count == 2);
    Err err = compile(c, expr->arg[0], &ins.a);
    if (err != OK) return err;
    err = compile(c, expr->arg[1], &ins.b);
    if (err != OK) return err;
    ins.out = slot;
    return emit(c, ins, NULL);
}

/* All jumps to the end of a construct, in one list through their targets. */
typedef struct JumpList {
    u32 head;
} JumpList;
#define JUMPS_NONE U32_MAX

static void
jumps_add(Compiler *c, JumpList *list, u32 at)
{
    c->ins[at].target = list->head;
    list->head = at;
}

static void
jumps_patch(Compiler *c, JumpList *list)
{
    u32 at = list->head;
    while (at != JUMPS_NONE) {
        u32 next = c->ins[at].target;
        patch(c, at);
        at = next;
    }
}

/*
 * May evaluation stop before the terms from `first` on?  As a condition always.  As a value SQLite
 * computes all terms but subqueries; that can be told only if they fail or have side effects.
 */
static bool
may_skip(const Compiler *c, const PlanExpr *expr, u32 first)
{
    if (c->condition) return true;
    for (u32 i = first; i < expr->arg_count; i++) {
        bool has_sub = (expr->arg[i]->flags & PX_FLAG_HAS_SUB) != 0;
        if (expr->arg[i]->klass != PLAN_TOTAL && !has_sub) return false;
    }
    return true;
}

/* AND, OR: the result so far stands in the slot, each term is folded into it. */
static Err
compile_logic(Compiler *c, const PlanExpr *expr, u32 slot)
{
    bool is_and = expr->op == PX_AND, condition = c->condition;
    JumpList end = {JUMPS_NONE};
    Err err = emit(c, (Ins){.op = INS_SET, .flag = is_and, .out = slot}, NULL);
    for (u32 i = 0; err == OK && i < expr->arg_count; i++) {
        u32 mark = c->top, at = 0;
        Ins ins = {.op = is_and ? INS_AND_STEP : INS_OR_STEP, .out = slot};
        c->condition = condition;
        bool skips = may_skip(c, expr, i + 1);
        err = compile(c, expr->arg[i], &ins.a);
        if (!skips) ins.flag = KEEP_GOING;
        if (err == OK) err = emit(c, ins, &at);
        if (err == OK && skips) jumps_add(c, &end, at);
        c->top = mark;
    }
    c->condition = false;
    jumps_patch(c, &end);
    return err;
}

static Err
compile_between(Compiler *c, const PlanExpr *expr, u32 slot)
{
    ASSERT(expr->arg_count == 3);
    JumpList end = {JUMPS_NONE};
    Operand x;
    Err err = compile(c, expr->arg[0], &x);
    if (err == OK) err = emit(c, (Ins){.op = INS_SET, .flag = 1, .out = slot}, NULL);
    for (u32 i = 1; err == OK && i <= 2; i++) {
        const PlanStamp *stamp = i == 1 ? &expr->u.between.low : &expr->u.between.high;
        u32 mark = c->top, at = 0;
        u32 verdict = slots_take(c, 1);
        Ins compare = {.op = INS_COMPARE,
                       .affinity = stamp->affinity,
                       .flag = i == 1 ? PX_GE : PX_LE,
                       .a = x,
                       .out = verdict,
                       .u.collation = stamp->collation};
        err = compile(c, expr->arg[i], &compare.b);
        if (err == OK) err = emit(c, compare, NULL);
        if (err == OK) {
            err = emit(c, (Ins){.op = INS_AND_STEP, .out = slot, .a = OPERAND(AT_SLOT, verdict)},
                       &at);
        }
        if (err == OK) jumps_add(c, &end, at);
        c->top = mark;
    }
    jumps_patch(c, &end);
    return err;
}

/* NOT in place, for the constructs with a NOT flag. */
static Err
negate_if(Compiler *c, const PlanExpr *expr, u32 slot)
{
    if ((expr->flags & PX_FLAG_NOT) == 0) return OK;
    return emit(c, (Ins){.op = INS_NOT, .a = OPERAND(AT_SLOT, slot), .out = slot}, NULL);
}

static Err
compile_in_list(Compiler *c, const PlanExpr *expr, u32 slot)
{
    Operand x;
    Err err = compile(c, expr->arg[0], &x);
    if (err != OK) return err;
    if (exec__in_set_fits(expr) && expr->arg_count - 1 >= IN_LIST_SET_MIN) {
        Ins ins = {.op = INS_IN_SET, .a = x, .out = slot};
        err = exec__in_set_new(c->exec, expr, &ins.u.set);
        return err != OK ? err : emit(c, ins, NULL);
    }
    JumpList end = {JUMPS_NONE};
    err = emit(c, (Ins){.op = INS_SET, .flag = 0, .out = slot}, NULL);
    for (u32 i = 1; err == OK && i < expr->arg_count; i++) {
        u32 mark = c->top, at = 0;
        Ins ins = {.op = INS_IN_STEP,
                   .affinity = expr->cmp_affinity,
                   .a = x,
                   .out = slot,
                   .u.collation = expr->collation};
        /* A NULL on the left decides, but SQLite goes through the list all the same. */
        if (!may_skip(c, expr, i + 1)) ins.flag = KEEP_GOING;
        err = compile(c, expr->arg[i], &ins.b);
        if (err == OK) err = emit(c, ins, &at);
        if (err == OK) jumps_add(c, &end, at);
        c->top = mark;
    }
    jumps_patch(c, &end);
    return err;
}

static Err
compile_case(Compiler *c, const PlanExpr *expr, u32 slot)
{
    bool has_base = (expr->flags & PX_FLAG_BASE) != 0;
    bool has_else = (expr->flags & PX_FLAG_ELSE) != 0;
    u32 first = has_base ? 1 : 0;
    u32 arms = (expr->arg_count - first - (has_else ? 1 : 0)) / 2;
    JumpList end = {JUMPS_NONE};
    Operand base = 0;
    Err err = has_base ? compile(c, expr->arg[0], &base) : OK;
    for (u32 i = 0; err == OK && i < arms; i++) {
        u32 mark = c->top, skip = 0, at = 0;
        Operand when;
        c->condition = !has_base;
        err = compile(c, expr->arg[first + 2 * i], &when);
        c->condition = false;
        if (err == OK && has_base) {
            const PlanStamp *stamp = &expr->u.arm_stamps[i];
            u32 verdict = slots_take(c, 1);
            err = emit(c,
                       (Ins){.op = INS_COMPARE,
                             .flag = PX_EQ,
                             .affinity = stamp->affinity,
                             .a = base,
                             .b = when,
                             .out = verdict,
                             .u.collation = stamp->collation},
                       NULL);
            when = OPERAND(AT_SLOT, verdict);
        }
        if (err == OK) err = emit(c, (Ins){.op = INS_JUMP_NOT_TRUE, .a = when}, &skip);
        c->top = mark;
        if (err == OK) err = compile_into(c, expr->arg[first + 2 * i + 1], slot);
        if (err == OK) err = emit(c, (Ins){.op = INS_JUMP}, &at);
        if (err == OK) {
            jumps_add(c, &end, at);
            patch(c, skip);
        }
        c->top = mark;
    }
    if (err == OK && has_else) {
        err = compile_into(c, expr->arg[expr->arg_count - 1], slot);
    } else if (err == OK) {
        err = emit(c, (Ins){.op = INS_SET, .flag = EXEC_UNKNOWN, .out = slot}, NULL);
    }
    jumps_patch(c, &end);
    return err;
}

static Err
compile_coalesce(Compiler *c, const PlanExpr *expr, u32 slot)
{
    JumpList end = {JUMPS_NONE};
    Err err = OK;
    for (u32 i = 0; err == OK && i < expr->arg_count; i++) {
        u32 mark = c->top, at = 0;
        err = compile_into(c, expr->arg[i], slot);
        if (err == OK && i + 1 < expr->arg_count) {
            err = emit(c, (Ins){.op = INS_JUMP_NOT_NULL, .a = OPERAND(AT_SLOT, slot)}, &at);
            if (err == OK) jumps_add(c, &end, at);
        }
        c->top = mark;
    }
    jumps_patch(c, &end);
    return err;
}

static Err
call_site_new(Exec *exec, const PlanExpr *expr, CallSite **site_out)
{
    CallSite *site = ARENA_NEW(&exec->arena, CallSite);
    if (site == NULL) return ERR_NOMEM;
    site->argc = expr->arg_count;
    site->call.def = expr->u.func.def;
    site->call.env = exec->env->func;
    site->call.collation = &collation_binary;
    site->call.msg = &exec->msg;
    site->call.pure_in = expr->u.func.pure_in;
    for (u32 i = expr->arg_count; i-- > 0;) {
        const PlanExpr *arg = expr->arg[i];
        const u16 varying = PX_FLAG_READS_ROW | PX_FLAG_READS_REG | PX_FLAG_HAS_SUB;
        if (arg->collation != NULL) site->call.collation = arg->collation;
        if (i < 64 && (arg->flags & varying) == 0 && arg->klass != PLAN_VOLATILE &&
            arg->op != PX_COLUMN && arg->op != PX_REG) {
            site->constant_args |= (u64)1 << i;
        }
    }
    if (expr->arg_count > 0) {
        site->call.aux = ARENA_NEW_ARRAY(&exec->arena, void *, expr->arg_count);
        site->call.aux_free = arena_alloc(&exec->arena, expr->arg_count * sizeof(void (*)(void *)));
        if (site->call.aux == NULL || site->call.aux_free == NULL) return ERR_NOMEM;
        site->call.aux_count = expr->arg_count;
    }
    site->next = exec->sites;
    exec->sites = site;
    *site_out = site;
    return OK;
}

static Err
compile_call(Compiler *c, const PlanExpr *expr, u32 slot)
{
    u32 first = slots_take(c, expr->arg_count);
    Ins ins = {.op = INS_CALL, .a = OPERAND(AT_SLOT, first), .out = slot};
    Err err = OK;
    for (u32 i = 0; err == OK && i < expr->arg_count; i++) {
        u32 mark = c->top;
        err = compile_into(c, expr->arg[i], first + i);
        c->top = mark;
    }
    if (err == OK) err = call_site_new(c->exec, expr, &ins.u.site);
    return err != OK ? err : emit(c, ins, NULL);
}

static Err
compile_row_compare(Compiler *c, const PlanExpr *expr, u32 slot)
{
    JumpList end = {JUMPS_NONE};
    u32 columns = expr->u.row.columns;
    u8 op = expr->u.row.op;
    /* What stands if no column decides: equal rows. */
    bool equal = op == PX_EQ || op == PX_LE || op == PX_GE || op == PX_IS;
    Err err = emit(c, (Ins){.op = INS_SET, .flag = equal, .out = slot}, NULL);
    for (u32 i = 0; err == OK && i < columns; i++) {
        u32 mark = c->top, at = 0;
        Ins ins = {.op = INS_ROW_STEP,
                   .flag = op,
                   .affinity = expr->u.row.stamps[i].affinity,
                   .out = slot,
                   .u.collation = expr->u.row.stamps[i].collation};
        err = compile(c, expr->arg[i], &ins.a);
        if (err == OK) err = compile(c, expr->arg[columns + i], &ins.b);
        if (err == OK) err = emit(c, ins, &at);
        if (err == OK) jumps_add(c, &end, at);
        c->top = mark;
    }
    jumps_patch(c, &end);
    return err;
}

/* Set the registers that the subquery reads. */
static Err
compile_binds(Compiler *c, const PlanSub *sub)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < sub->bind_count; i++) {
        u32 mark = c->top;
        Ins ins = {.op = INS_BIND, .out = sub->bind_reg[i]};
        err = compile(c, sub->bind_expr[i], &ins.a);
        if (err == OK) err = emit(c, ins, NULL);
        c->top = mark;
    }
    return err;
}

static Err
compile_sub(Compiler *c, const PlanExpr *expr, u32 slot)
{
    const PlanSub *plan = expr->op == PX_SUB_COLUMN ? expr->u.sub_column.sub : expr->u.sub;
    Ins ins = {.out = slot};
    Err err = OK;
    switch (expr->op) {
    case PX_EXISTS: ins.op = INS_EXISTS; break;
    case PX_SCALAR: ins.op = INS_SCALAR; break;
    case PX_SUB_COLUMN:
        ins.op = INS_SUB_COLUMN;
        ins.b = expr->u.sub_column.column;
        break;
    default: ins.op = INS_IN_SUB; break;
    }
    if (expr->op == PX_IN_SUB) {
        u32 first = slots_take(c, expr->arg_count);
        ins.a = OPERAND(AT_SLOT, first);
        for (u32 i = 0; err == OK && i < expr->arg_count; i++) {
            u32 mark = c->top;
            err = compile_into(c, expr->arg[i], first + i);
            c->top = mark;
        }
    }
    if (err == OK) err = compile_binds(c, plan);
    if (err == OK) err = exec__sub_open(c->exec, plan, &ins.u.sub);
    return err != OK ? err : emit(c, ins, NULL);
}

static Err
compile_op(Compiler *c, const PlanExpr *expr, u32 slot)
{
    Err err = OK;
    switch ((PlanOp)expr->op) {
    case PX_NEG: return compile_unary(c, expr, slot, (Ins){.op = INS_NEG});
    case PX_BIT_NOT: return compile_unary(c, expr, slot, (Ins){.op = INS_BIT_NOT});
    case PX_NOT: return compile_unary(c, expr, slot, (Ins){.op = INS_NOT});
    case PX_IS_NULL: return compile_unary(c, expr, slot, (Ins){.op = INS_IS_NULL});
    case PX_NOT_NULL: return compile_unary(c, expr, slot, (Ins){.op = INS_NOT_NULL});
    case PX_IS_TRUE: return compile_unary(c, expr, slot, (Ins){.op = INS_IS_TRUTH, .flag = 1});
    case PX_IS_FALSE: return compile_unary(c, expr, slot, (Ins){.op = INS_IS_TRUTH, .flag = 0});
    case PX_IS_NOT_TRUE: return compile_unary(c, expr, slot, (Ins){.op = INS_IS_TRUTH, .flag = 3});
    case PX_IS_NOT_FALSE: return compile_unary(c, expr, slot, (Ins){.op = INS_IS_TRUTH, .flag = 2});
    case PX_PLUS: return compile_unary(c, expr, slot, (Ins){.op = INS_MOVE});
    case PX_CAST:
        return compile_unary(c, expr, slot, (Ins){.op = INS_CAST, .affinity = expr->affinity});
    case PX_AFFINITY:
        return compile_unary(c, expr, slot, (Ins){.op = INS_AFFINITY, .affinity = expr->affinity});
    case PX_ADD: return compile_binary(c, expr, slot, (Ins){.op = INS_ADD});
    case PX_SUB: return compile_binary(c, expr, slot, (Ins){.op = INS_SUB});
    case PX_MUL: return compile_binary(c, expr, slot, (Ins){.op = INS_MUL});
    case PX_DIV: return compile_binary(c, expr, slot, (Ins){.op = INS_DIV});
    case PX_REM: return compile_binary(c, expr, slot, (Ins){.op = INS_REM});
    case PX_BIT_AND: return compile_binary(c, expr, slot, (Ins){.op = INS_BIT_AND});
    case PX_BIT_OR: return compile_binary(c, expr, slot, (Ins){.op = INS_BIT_OR});
    case PX_SHL: return compile_binary(c, expr, slot, (Ins){.op = INS_SHL});
    case PX_SHR: return compile_binary(c, expr, slot, (Ins){.op = INS_SHR});
    case PX_CONCAT: return compile_binary(c, expr, slot, (Ins){.op = INS_CONCAT});
    case PX_EQ:
    case PX_NE:
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE:
    case PX_IS:
    case PX_IS_NOT:
        return compile_binary(c, expr, slot,
                              (Ins){.op = INS_COMPARE,
                                    .flag = expr->op,
                                    .affinity = expr->cmp_affinity,
                                    .u.collation = expr->collation});
    case PX_AND:
    case PX_OR: return compile_logic(c, expr, slot);
    case PX_BETWEEN: err = compile_between(c, expr, slot); break;
    case PX_IN_LIST: err = compile_in_list(c, expr, slot); break;
    case PX_IN_SUB:
    case PX_EXISTS:
    case PX_SCALAR:
    case PX_SUB_COLUMN: err = compile_sub(c, expr, slot); break;
    case PX_CASE: return compile_case(c, expr, slot);
    case PX_FUNC: return compile_call(c, expr, slot);
    case PX_COALESCE: return compile_coalesce(c, expr, slot);
    case PX_ROW_COMPARE: err = compile_row_compare(c, expr, slot); break;
    case PX_RAISE: {
        Ins ins = {.op = INS_RAISE, .flag = expr->u.raise.action};
        if (expr->arg_count == 0) {
            Cell none = cell_null();
            err = constant_add(c, &none, &ins.a);
            return err != OK ? err : emit(c, ins, NULL);
        }
        return compile_unary(c, expr, slot, ins);
    }
    default: return exec__fail(c->exec, ERR_INTERNAL, "unknown expression %u", expr->op);
    }
    return err != OK ? err : negate_if(c, expr, slot);
}

/* The value of `expr` goes to `slot`; temporaries stand above the slots taken so far. */
static Err
compile_into(Compiler *c, const PlanExpr *expr, u32 slot)
{
    if (rt_stack_left() < RT_STACK_RESERVE) {
        return exec__fail(c->exec, ERR_SQL, "Expression tree is too large");
    }
    u32 mark = c->top;
    Err err;
    if (expr->op != PX_AND && expr->op != PX_OR && expr->op != PX_NOT) c->condition = false;
    if (expr->op <= PX_REG || runs_once(c, expr)) {
        Ins ins = {.op = INS_MOVE, .out = slot};
        err = compile(c, expr, &ins.a);
        if (err == OK) err = emit(c, ins, NULL);
    } else {
        err = compile_op(c, expr, slot);
    }
    c->top = mark;
    return err;
}

static Err
program_make(Exec *exec, const PlanExpr *expr, bool condition, ExecProgram **program_out)
{
    *program_out = NULL;
    Compiler c = {.exec = exec, .condition = condition};
    /* The key of a look-up: keeping the value would cost more than making it. */
    c.in_once = expr->op == PX_AFFINITY && expr->arg[0]->op <= PX_REG;
    Operand result = 0;
    Err err = compile(&c, expr, &result);
    if (err != OK) return exec->msg.err != OK ? err : exec__fail(exec, err, NULL);
    ExecProgram *program = ARENA_NEW(&exec->arena, ExecProgram);
    if (program == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    *program = (ExecProgram){.expr = expr,
                             .ins = c.ins,
                             .ins_count = c.ins_count,
                             .result = result,
                             .constant = c.constant,
                             .once_count = c.once_count,
                             .column_count = c.column_count,
                             .column = c.column};
    if (c.column_count > 0) program->row_cells = c.column[c.column_count - 1] + 1;
    if (c.top_max > 0) {
        program->slot = ARENA_NEW_ARRAY(&exec->arena, Cell, c.top_max);
        if (program->slot == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    }
    if (c.once_count > 0) {
        program->once = ARENA_NEW_ARRAY(&exec->arena, Cell, c.once_count);
        program->once_run = ARENA_NEW_ARRAY(&exec->arena, u64, c.once_count);
        if (program->once == NULL || program->once_run == NULL) {
            return exec__fail(exec, ERR_NOMEM, NULL);
        }
    }
    *program_out = program;
    return OK;
}

Err
exec__compile(Exec *exec, const PlanExpr *expr, ExecProgram **program_out)
{
    return program_make(exec, expr, false, program_out);
}

Err
exec__compile_condition(Exec *exec, const PlanExpr *expr, ExecProgram **program_out)
{
    return program_make(exec, expr, true, program_out);
}

Err
exec__compile_list(Exec *exec, PlanExpr *const *expr, u32 count, ExecProgram ***programs_out)
{
    *programs_out = NULL;
    if (count == 0) return OK;
    ExecProgram **programs = ARENA_NEW_ARRAY(&exec->arena, ExecProgram *, count);
    if (programs == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < count; i++) {
        if (expr[i] == NULL) continue;
        Err err = exec__compile(exec, expr[i], &programs[i]);
        if (err != OK) return err;
    }
    *programs_out = programs;
    return OK;
}
