/*
 * interpret.c -- the row interpreter: one program, one row.
 *
 * This is the one table of semantics; batch kernels are tested against it.
 */
#include "exec/exec__write.h"
#include "exec/program.h"

/* One evaluation. */
typedef struct Frame {
    Exec *exec;
    const ExecProgram *program;
    const Cell *base[AT_COUNT_];
    Cell *slot;
    Arena *arena;
} Frame;

static inline const Cell *
at(const Frame *frame, Operand operand)
{
    return frame->base[OPERAND_BASE(operand)] + OPERAND_INDEX(operand);
}

static inline Cell
truth_cell(ExecTruth truth)
{
    return truth == EXEC_UNKNOWN ? cell_null() : cell_int(truth == EXEC_TRUE);
}

static inline ExecTruth
truth_of(const Cell *cell)
{
    if (cell->type == CELL_INT) return cell->u.i != 0 ? EXEC_TRUE : EXEC_FALSE;
    return (ExecTruth)cell_truth(cell);
}

/* Does an ordering between two values satisfy the operator? */
static inline bool
order_fits(u8 op, int order)
{
    switch (op) {
    case PX_EQ:
    case PX_IS: return order == 0;
    case PX_NE:
    case PX_IS_NOT: return order != 0;
    case PX_LT: return order < 0;
    case PX_LE: return order <= 0;
    case PX_GT: return order > 0;
    default: return order >= 0;
    }
}

Err
exec__compare_cells(Exec *exec, u8 op, u8 affinity, const Collation *collation, const Cell *a,
                    const Cell *b, Arena *arena, ExecTruth *truth_out)
{
    if (a->type == CELL_INT && b->type == CELL_INT) {
        int order = a->u.i < b->u.i ? -1 : a->u.i > b->u.i;
        *truth_out = order_fits(op, order) ? EXEC_TRUE : EXEC_FALSE;
        return OK;
    }
    if (a->type == CELL_NULL || b->type == CELL_NULL) {
        bool both = a->type == CELL_NULL && b->type == CELL_NULL;
        *truth_out = op == PX_IS       ? (both ? EXEC_TRUE : EXEC_FALSE)
                     : op == PX_IS_NOT ? (both ? EXEC_FALSE : EXEC_TRUE)
                                       : EXEC_UNKNOWN;
        return OK;
    }
    if (affinity >= AFFINITY_TEXT && a->type != b->type) {
        Cell x = *a, y = *b;
        Err err = cell_pair_apply_affinity(&x, &y, affinity, arena);
        if (err != OK) return exec__fail(exec, err, NULL);
        *truth_out = order_fits(op, cell_compare(&x, &y, collation)) ? EXEC_TRUE : EXEC_FALSE;
        return OK;
    }
    if (affinity >= AFFINITY_NUMERIC && a->type == CELL_TEXT) {
        /* Two texts under a numeric affinity: both may be numbers. */
        Cell x = *a, y = *b;
        Err err = cell_pair_apply_affinity(&x, &y, affinity, arena);
        if (err != OK) return exec__fail(exec, err, NULL);
        *truth_out = order_fits(op, cell_compare(&x, &y, collation)) ? EXEC_TRUE : EXEC_FALSE;
        return OK;
    }
    *truth_out = order_fits(op, cell_compare(a, b, collation)) ? EXEC_TRUE : EXEC_FALSE;
    return OK;
}

static inline Err
do_compare(const Frame *frame, const Ins *ins, ExecTruth *truth_out)
{
    return exec__compare_cells(frame->exec, ins->flag, ins->affinity, ins->u.collation,
                               at(frame, ins->a), at(frame, ins->b), frame->arena, truth_out);
}

static Cell
binary_number(const Ins *ins, const Cell *a, const Cell *b)
{
    switch (ins->op) {
    case INS_ADD: return cell_add(a, b);
    case INS_SUB: return cell_sub(a, b);
    case INS_MUL: return cell_mul(a, b);
    case INS_DIV: return cell_div(a, b);
    case INS_REM: return cell_rem(a, b);
    case INS_BIT_AND: return cell_bit_and(a, b);
    case INS_BIT_OR: return cell_bit_or(a, b);
    case INS_SHL: return cell_shl(a, b);
    default: return cell_shr(a, b);
    }
}

static Err
do_concat(const Frame *frame, const Ins *ins, Cell *out)
{
    Exec *exec = frame->exec;
    u64 length_max = exec->env->length_max != 0 ? exec->env->length_max : 1000000000;
    Err err = cell_concat(at(frame, ins->a), at(frame, ins->b), length_max, frame->arena, out);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* Auxiliary data stays only for arguments that cannot change. */
static void
aux_forget(CallSite *site, u64 keep)
{
    for (u32 i = 0; i < site->call.aux_count; i++) {
        if (site->call.aux[i] == NULL || (i < 64 && (keep >> i & 1) != 0)) continue;
        if (site->call.aux_free[i] != NULL) site->call.aux_free[i](site->call.aux[i]);
        site->call.aux[i] = NULL;
        site->call.aux_free[i] = NULL;
    }
}

void
exec__sites_forget(Exec *exec)
{
    for (CallSite *site = exec->sites; site != NULL; site = site->next) {
        aux_forget(site, 0);
    }
}

Err
exec__fail_call(Exec *exec, const FuncDef *def, Err err)
{
    if (exec->msg.err == OK) return err_set(&exec->msg, err, "%s", err_text(err));
    (void)def;
    return exec->msg.err;
}

static Err
do_call(const Frame *frame, const Ins *ins, Cell *out)
{
    CallSite *site = ins->u.site;
    FuncCall *call = &site->call;
    Cell result = cell_null();
    call->arena = frame->arena;
    Err err = call->def->scalar(call, site->argc, at(frame, ins->a), &result);
    if (site->constant_args + 1 != (u64)1 << (site->argc & 63)) {
        aux_forget(site, site->constant_args);
    }
    if (err != OK) return exec__fail_call(frame->exec, call->def, err);
    *out = result;
    return OK;
}

static Err
do_raise(const Frame *frame, const Ins *ins)
{
    Exec *exec = frame->exec;
    exec->raise = ins->flag;
    if (ins->flag == CONFLICT_IGNORE) return err_set(&exec->msg, ERR_ABORT, "ignored by trigger");
    Slice text = SLICE_NONE;
    Err err = cell_text_bytes(at(frame, ins->a), frame->arena, &text);
    if (err != OK) return exec__fail(exec, err, NULL);
    return err_set(&exec->msg, ERR_CONSTRAINT_TRIGGER, "%.*s", (int)text.bytes,
                   text.bytes > 0 ? (const char *)text.p : "");
}

/* x IN (...item...): one item. */
static Err
do_in_step(const Frame *frame, const Ins *ins, bool *jump_out)
{
    Cell *out = &frame->slot[ins->out];
    *jump_out = false;
    if (at(frame, ins->a)->type == CELL_NULL) {
        *out = cell_null();
        *jump_out = ins->flag != KEEP_GOING;
        return OK;
    }
    ExecTruth truth;
    Ins equal = *ins;
    equal.flag = PX_EQ;
    Err err = do_compare(frame, &equal, &truth);
    if (err != OK) return err;
    if (truth == EXEC_TRUE) *out = cell_int(1);
    if (truth == EXEC_UNKNOWN) *out = cell_null();
    *jump_out = truth == EXEC_TRUE;
    return OK;
}

/*
 * One column of a row comparison.  = and <>: a difference decides; a NULL leaves the result
 * unknown unless a later column differs.  IS never has unknowns.  Orders: the first column that is
 * not equal decides, with NULL it is unknown.
 */
static Err
do_row_step(const Frame *frame, const Ins *ins, bool *jump_out)
{
    Cell *out = &frame->slot[ins->out];
    bool is_equality = ins->flag == PX_EQ || ins->flag == PX_NE;
    bool is_identity = ins->flag == PX_IS || ins->flag == PX_IS_NOT;
    Ins compare = *ins;
    ExecTruth truth;
    compare.flag = is_identity ? PX_IS : PX_EQ;
    Err err = do_compare(frame, &compare, &truth);
    if (err != OK) return err;
    *jump_out = false;
    if (truth == EXEC_TRUE) return OK;
    if (truth == EXEC_UNKNOWN) {
        *out = cell_null();
        *jump_out = !is_equality;
        return OK;
    }
    *jump_out = true;
    if (is_equality || is_identity) {
        *out = cell_int(ins->flag == PX_NE || ins->flag == PX_IS_NOT);
        return OK;
    }
    compare.flag = ins->flag == PX_LE ? PX_LT : ins->flag == PX_GE ? PX_GT : ins->flag;
    err = do_compare(frame, &compare, &truth);
    if (err == OK) *out = truth_cell(truth);
    return err;
}

static Err
do_sub(const Frame *frame, const Ins *ins, Cell *out)
{
    bool exists = false;
    Err err = OK;
    switch (ins->op) {
    case INS_EXISTS:
        err = exec__sub_exists(frame->exec, ins->u.sub, frame->arena, &exists);
        *out = cell_int(exists);
        return err;
    case INS_SCALAR: return exec__sub_scalar(frame->exec, ins->u.sub, 0, frame->arena, out);
    case INS_SUB_COLUMN:
        return exec__sub_scalar(frame->exec, ins->u.sub, ins->b, frame->arena, out);
    default: return exec__sub_in(frame->exec, ins->u.sub, at(frame, ins->a), frame->arena, out);
    }
}

static Err
do_once_set(const Frame *frame, const Ins *ins)
{
    const ExecProgram *program = frame->program;
    Exec *exec = frame->exec;
    Err err = cell_copy(at(frame, ins->a), &exec->run_arena, &program->once[ins->out]);
    if (err != OK) return exec__fail(exec, err, NULL);
    program->once_run[ins->out] = exec->run_no;
    return OK;
}

/* Fold one term into an AND or OR; true: decided. */
static inline bool
logic_step(const Frame *frame, const Ins *ins, ExecTruth decides)
{
    ExecTruth truth = truth_of(at(frame, ins->a));
    Cell *out = &frame->slot[ins->out];
    if (truth == decides) {
        *out = cell_int(decides == EXEC_TRUE);
        return ins->flag != KEEP_GOING;
    }
    /* Not when an earlier term has decided. */
    if (truth == EXEC_UNKNOWN && truth_of(out) != decides) *out = cell_null();
    return false;
}

static Err
do_conversion(const Frame *frame, const Ins *ins, Cell *out)
{
    Cell value = *at(frame, ins->a);
    Err err = ins->op == INS_CAST ? cell_cast(&value, ins->affinity, frame->arena)
                                  : cell_apply_affinity(&value, ins->affinity, frame->arena);
    if (err != OK) return exec__fail(frame->exec, err, NULL);
    *out = value;
    return OK;
}

/* The rarer instructions, which may fail. */
static Err
run_fallible(const Frame *frame, const Ins *ins, bool *jump_out)
{
    Cell *out = &frame->slot[ins->out];
    ExecTruth truth = EXEC_FALSE;
    Err err = OK;
    switch (ins->op) {
    case INS_CAST:
    case INS_AFFINITY: return do_conversion(frame, ins, out);
    case INS_CONCAT: return do_concat(frame, ins, out);
    case INS_COMPARE:
        err = do_compare(frame, ins, &truth);
        *out = truth_cell(truth);
        return err;
    case INS_IN_STEP: return do_in_step(frame, ins, jump_out);
    case INS_IN_SET:
        return exec__in_set_test(frame->exec, ins->u.set, at(frame, ins->a), frame->arena, out);
    case INS_ROW_STEP: return do_row_step(frame, ins, jump_out);
    case INS_ONCE_SET: return do_once_set(frame, ins);
    case INS_CALL: return do_call(frame, ins, out);
    case INS_EXISTS:
    case INS_SCALAR:
    case INS_SUB_COLUMN:
    case INS_IN_SUB: return do_sub(frame, ins, out);
    case INS_RAISE: return do_raise(frame, ins);
    default: UNREACHABLE();
    }
}

static Err
run(const Frame *frame)
{
    const ExecProgram *program = frame->program;
    u32 next = 0;
    while (next < program->ins_count) {
        const Ins *ins = &program->ins[next++];
        Cell *out = &frame->slot[ins->out];
        bool jump = false;
        switch (ins->op) {
        case INS_MOVE: *out = *at(frame, ins->a); break;
        case INS_SET: *out = truth_cell((ExecTruth)ins->flag); break;
        case INS_NEG: *out = cell_neg(at(frame, ins->a)); break;
        case INS_BIT_NOT: *out = cell_bit_not(at(frame, ins->a)); break;
        case INS_NOT: {
            ExecTruth truth = truth_of(at(frame, ins->a));
            *out = truth == EXEC_UNKNOWN ? cell_null() : cell_int(truth == EXEC_FALSE);
            break;
        }
        case INS_IS_NULL: *out = cell_int(at(frame, ins->a)->type == CELL_NULL); break;
        case INS_NOT_NULL: *out = cell_int(at(frame, ins->a)->type != CELL_NULL); break;
        case INS_IS_TRUTH: {
            bool is = truth_of(at(frame, ins->a)) == (ExecTruth)(ins->flag & 1);
            *out = cell_int(is != ((ins->flag & 2) != 0));
            break;
        }
        case INS_ADD:
        case INS_SUB:
        case INS_MUL:
        case INS_DIV:
        case INS_REM:
        case INS_BIT_AND:
        case INS_BIT_OR:
        case INS_SHL:
        case INS_SHR: *out = binary_number(ins, at(frame, ins->a), at(frame, ins->b)); break;
        case INS_AND_STEP: jump = logic_step(frame, ins, EXEC_FALSE); break;
        case INS_OR_STEP: jump = logic_step(frame, ins, EXEC_TRUE); break;
        case INS_JUMP: jump = true; break;
        case INS_JUMP_NOT_TRUE: jump = truth_of(at(frame, ins->a)) != EXEC_TRUE; break;
        case INS_JUMP_NOT_NULL: jump = at(frame, ins->a)->type != CELL_NULL; break;
        case INS_ONCE: jump = program->once_run[ins->out] == frame->exec->run_no; break;
        case INS_BIND: frame->exec->reg[ins->out] = *at(frame, ins->a); break;
        default: {
            Err err = run_fallible(frame, ins, &jump);
            if (err != OK) return err;
            break;
        }
        }
        if (jump) next = ins->target;
    }
    return OK;
}

/* A lone conversion of an integer to an affinity that leaves it alone: the key of most look-ups. */
static inline bool
converts_int(const Frame *frame, Cell *value_out)
{
    const Ins *ins = frame->program->ins;
    if (ins->op != INS_AFFINITY) return false;
    if (ins->affinity != AFFINITY_INTEGER && ins->affinity != AFFINITY_NUMERIC) return false;
    const Cell *value = at(frame, ins->a);
    if (value->type != CELL_INT) return false;
    *value_out = cell_int(value->u.i);
    return true;
}

Err
exec__eval_argument(Exec *exec, const ExecProgram *program, Arena *arena, Cell *value_out)
{
    const Frame frame = {
        .exec = exec,
        .program = program,
        .base = {program->slot, NULL, program->constant, exec->param, exec->reg, program->once},
        .slot = program->slot,
        .arena = arena};
    if (program->ins_count > 0) {
        Err err = run(&frame);
        if (err != OK) return err;
    }
    *value_out = *at(&frame, program->result);
    return OK;
}

Err
exec__eval_subtype_in(Exec *exec, const ExecProgram *program, const Cell *row, Arena *arena,
                      Cell *value_out)
{
    const Frame frame = {
        .exec = exec,
        .program = program,
        .base = {program->slot, row, program->constant, exec->param, exec->reg, program->once},
        .slot = program->slot,
        .arena = arena};
    if (program->ins_count == 1 && converts_int(&frame, value_out)) return OK;
    if (program->ins_count > 0) {
        Err err = run(&frame);
        if (err != OK) return err;
    }
    Cell value = *at(&frame, program->result);
    if ((value.flags & CELL_POINTER) != 0) value = cell_null();
    *value_out = value;
    return OK;
}

Err
exec__eval_in(Exec *exec, const ExecProgram *program, const Cell *row, Arena *arena,
              Cell *value_out)
{
    if (program->ins_count == 0 && OPERAND_BASE(program->result) == AT_CONST) {
        *value_out = program->constant[OPERAND_INDEX(program->result)];
        value_out->subtype = 0;
        return OK;
    }
    Err err = exec__eval_subtype_in(exec, program, row, arena, value_out);
    value_out->subtype = 0;
    return err;
}

Err
exec__eval(Exec *exec, const ExecProgram *program, const Cell *row, Cell *value_out)
{
    return exec__eval_in(exec, program, row, &exec->row_arena, value_out);
}

Err
exec__eval_truth(Exec *exec, const ExecProgram *program, const Cell *row, ExecTruth *truth_out)
{
    return exec__truth_in(exec, program, row, &exec->row_arena, truth_out);
}

Err
exec__truth_in(Exec *exec, const ExecProgram *program, const Cell *row, Arena *arena,
               ExecTruth *truth_out)
{
    Cell value;
    Err err = exec__eval_in(exec, program, row, arena, &value);
    if (err == OK) *truth_out = truth_of(&value);
    return err;
}
