/*
 * short.c -- the short path: a chain of plan nodes run row by row.
 *
 * Every stage changes the row at hand in place or makes another one; no stage makes two rows of
 * one, so a row passes them all before the next one is read.  Programs, codecs and aggregates are
 * those of the operators, which stand ready for runs that the chain declines.
 */
#include "exec/short.h"

#include "exec/exec__write.h"
#include "exec/group.h"

/* A range that has more entries is a matter for batches. */
#define SHORT_ROWS 16u
/* Entries that are looked at for one row that passes the filters: mostly they test for NULL. */
#define TRY_ROWS 1u
/* Entries of the first fetch: what would be too many is no loss, since then it is handed over. */
#define FETCH_ROWS 128u

/* ---- does the plan have the shape? ---- */

static bool
has_far_end(const PlanScan *scan)
{
    return scan->eq_count > 0 || (scan->backwards ? scan->low : scan->high) != NULL;
}

static bool
scan_fits(const PlanScan *scan, bool limited)
{
    for (u32 i = 0; i < scan->eq_count; i++) {
        if (scan->eq[i].value == NULL) return false; /* An IN list. */
    }
    return has_far_end(scan) || limited;
}

static bool
join_fits(const PlanNode *join)
{
    bool plain = join->u.loop.join == JOIN_INNER || join->u.loop.join == JOIN_LEFT;
    return plain && join->right->kind == PLAN_SCAN && exec__look_fits(&join->right->u.scan);
}

/* A condition that reads no row is decided before the input is touched: the operator's matter. */
static bool
filter_fits(const PlanExpr *condition)
{
    return (condition->flags & PX_FLAG_READS_ROW) != 0;
}

/* The number of stages, or -1.  `limited`: one row is enough. */
static i32
stages_of(const PlanNode *node, bool limited)
{
    i32 count = 0;
    bool grouped = false;
    for (;; node = node->input) {
        switch (node->kind) {
        case PLAN_ONE_ROW: return count;
        case PLAN_SCAN:
            if (exec__look_fits(&node->u.scan)) return count + 1;
            return scan_fits(&node->u.scan, limited) ? count : -1;
        case PLAN_FILTER:
            if (!filter_fits(node->u.filter.condition)) return -1;
            break;
        case PLAN_PROJECT: break;
        case PLAN_LIMIT: limited = true; break;
        case PLAN_LOOP_JOIN:
            if (!join_fits(node)) return -1;
            if (node->u.loop.join == JOIN_INNER) limited = false;
            break;
        case PLAN_GROUP:
            if (grouped || node->u.group.key_count > 0 || node->u.group.bare_count > 0) return -1;
            grouped = true;
            limited = false;
            break;
        default: return -1;
        }
        count++;
    }
}

/* ---- making the chain ---- */

static bool
only_passes(const Stage *stage)
{
    for (u32 i = 0; i < stage->columns; i++) {
        if (stage->program[i] != NULL) return false;
    }
    return true;
}

/* A projection right above a look-up without filter that only chooses columns is the look-up's. */
static bool
becomes_pick(ExecShort *chain, const Stage *stage)
{
    Stage *below = chain->stage_count > 0 ? &chain->stage[chain->stage_count - 1] : NULL;
    if (below == NULL || below->kind != STAGE_LOOK || below->join != NULL) return false;
    if (below->look.pick != NULL || below->look.scan->filter != NULL) return false;
    if (!only_passes(stage)) return false;
    below->look.pick = stage->pass;
    below->look.count = stage->columns;
    below->row = stage->row;
    return true;
}

/* Add the stage of `node`, whose input has been added and puts its cells at `in`. */
static void
stage_add(Exec *exec, ExecShort *chain, const PlanNode *node, Cell *in, Cell *row)
{
    ExecNode *run = exec->node[node->number];
    Stage stage = {.in = in, .row = row, .columns = node->columns};
    switch (node->kind) {
    case PLAN_FILTER:
        stage.kind = STAGE_FILTER;
        stage.condition = exec__filter_program(run);
        break;
    case PLAN_PROJECT:
        stage.kind = STAGE_PROJECT;
        exec__project_parts(run, &stage.program, &stage.pass);
        if (becomes_pick(chain, &stage)) return;
        break;
    case PLAN_LIMIT:
        stage.kind = STAGE_LIMIT;
        exec__limit_parts(run, &stage.limit, &stage.offset);
        break;
    case PLAN_GROUP:
        stage.kind = STAGE_GROUP;
        stage.group = (Group *)run;
        chain->group_at = chain->stage_count;
        break;
    case PLAN_LOOP_JOIN:
        stage.kind = STAGE_LOOK;
        stage.join = node;
        stage.outer = node->u.loop.join == JOIN_LEFT;
        stage.condition = exec__loop_condition(run);
        stage.columns = node->right->columns;
        stage.row = row + node->input->columns;
        exec__look_init(&stage.look, (Scan *)exec->node[node->right->number]);
        break;
    default: UNREACHABLE();
    }
    chain->stage[chain->stage_count++] = stage;
}

/* Add the stages of `node` and of all below it, so that its cells come to stand at `row`. */
static Err
chain_build(Exec *exec, ExecShort *chain, const PlanNode *node, Cell *row)
{
    if (node->kind == PLAN_ONE_ROW) return OK;
    if (node->kind == PLAN_SCAN) {
        Scan *scan = (Scan *)exec->node[node->number];
        if (!exec__look_fits(&node->u.scan)) {
            chain->scan = scan;
            chain->scan_row = row;
            return OK;
        }
        Stage stage = {.kind = STAGE_LOOK, .row = row, .columns = node->columns};
        exec__look_init(&stage.look, scan);
        chain->stage[chain->stage_count++] = stage;
        return OK;
    }
    Cell *in = row;
    if (node->kind == PLAN_PROJECT || node->kind == PLAN_GROUP) {
        in = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(node->input->columns, 1u));
        if (in == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    }
    /* As deep as there are stages: the plan's own depth, which opening it has borne. */
    Err err = chain_build(exec, chain, node->input, in);
    if (err == OK) stage_add(exec, chain, node, in, row);
    return err;
}

/* What can be said of the chain once it is whole. */
static void
chain_judge(ExecShort *chain)
{
    const PlanScan *scan = chain->scan != NULL ? &chain->scan->node.plan->u.scan : NULL;
    bool counts = scan != NULL && scan->filter == NULL, filters = scan != NULL;
    chain->by_hand = counts && (scan->index == NULL || scan->covering);
    chain->limit_at = chain->first_at = chain->stage_count;
    chain->bounded = scan != NULL && has_far_end(scan);
    chain->lone = scan == NULL && chain->stage_count == 1 &&
                  (chain->stage[0].kind == STAGE_LOOK || chain->stage[0].kind == STAGE_PROJECT);
    chain->counts = counts && chain->group_at == 0 && chain->stage_count > 0 &&
                    exec__aggs_only_count(&chain->stage[0].group->aggs);
    for (u32 i = 0; i < chain->stage_count; i++) {
        const Stage *stage = &chain->stage[i];
        if (stage->kind == STAGE_LIMIT && counts && chain->limit_at == chain->stage_count) {
            chain->limit_at = i;
        }
        if (stage->kind == STAGE_LIMIT && filters && chain->first_at == chain->stage_count) {
            chain->first_at = i;
        }
        bool passes = stage->kind == STAGE_PROJECT && only_passes(stage);
        if (!passes && stage->kind != STAGE_LIMIT) chain->by_hand = false;
        if (stage->kind == STAGE_FILTER || stage->kind == STAGE_GROUP) counts = false;
        if (stage->kind == STAGE_LOOK || stage->kind == STAGE_GROUP) filters = false;
        if (stage->kind == STAGE_LOOK && !stage->outer) counts = false;
    }
    chain->every_passes = counts;
    chain->only_filters = filters;
}

Err
exec__short_open(Exec *exec, const PlanNode *root, bool first_only, Cell *row,
                 ExecShort **chain_out)
{
    *chain_out = NULL;
    i32 stages = stages_of(root, first_only);
    if (stages < 0) return OK;
    ExecShort *chain = ARENA_NEW(&exec->arena, ExecShort);
    if (chain == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    chain->stage = ARENA_NEW_ARRAY(&exec->arena, Stage, MAX_OF((u32)stages, 1u));
    if (chain->stage == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    chain->group_at = U32_MAX;
    chain->first_only = first_only;
    arena_init(&chain->bytes, exec->account);
    Err err = chain_build(exec, chain, root, row);
    if (err != OK) return err;
    ASSERT(chain->stage_count <= (u32)stages);
    chain->group_at = MIN_OF(chain->group_at, chain->stage_count);
    chain_judge(chain);
    *chain_out = chain;
    return OK;
}

/* ---- a row on its way ---- */

static Err
stage_look(Exec *exec, Stage *stage, bool *keep_out)
{
    const PlanNode *join = stage->join;
    if (join != NULL) {
        for (u32 i = 0; i < join->u.loop.bind_count; i++) {
            exec->reg[join->u.loop.bind_reg[i]] = stage->in[join->u.loop.bind_column[i]];
        }
    }
    Err err = exec__look(exec, &stage->look, stage->row, keep_out);
    if (err == OK && *keep_out && stage->condition != NULL) {
        ExecTruth truth = EXEC_FALSE;
        err = exec__truth_in(exec, stage->condition, stage->in, &stage->look.scan->node.bytes,
                             &truth);
        *keep_out = truth == EXEC_TRUE;
    }
    if (*keep_out || !stage->outer) return err;
    for (u32 i = 0; i < stage->columns; i++) {
        stage->row[i] = cell_null();
    }
    *keep_out = true;
    return err;
}

static Err
stage_project(Exec *exec, ExecShort *chain, const Stage *stage)
{
    for (u32 i = 0; i < stage->columns; i++) {
        const ExecProgram *program = stage->program[i];
        if (program == NULL) {
            stage->row[i] = stage->in[stage->pass[i]];
            continue;
        }
        Err err = exec__eval_in(exec, program, stage->in, &chain->bytes, &stage->row[i]);
        if (err != OK) return err;
    }
    return OK;
}

/* A row that comes to a LIMIT.  The last one wanted ends the reading. */
static bool
stage_limit(ExecShort *chain, Stage *stage)
{
    if (stage->skip > 0) {
        stage->skip--;
        return false;
    }
    if (stage->left > 0 && --stage->left == 0) chain->drained = true;
    return true;
}

/* Through the stages [from, to); *keep_out false: the row was dropped. */
static Err
row_through(Exec *exec, ExecShort *chain, u32 from, u32 to, bool *keep_out)
{
    Err err = OK;
    *keep_out = true;
    for (u32 i = from; err == OK && *keep_out && i < to; i++) {
        Stage *stage = &chain->stage[i];
        switch ((StageKind)stage->kind) {
        case STAGE_LOOK: err = stage_look(exec, stage, keep_out); break;
        case STAGE_FILTER: {
            ExecTruth truth = EXEC_FALSE;
            err = exec__truth_in(exec, stage->condition, stage->in, &chain->bytes, &truth);
            *keep_out = truth == EXEC_TRUE;
            break;
        }
        case STAGE_PROJECT: err = stage_project(exec, chain, stage); break;
        case STAGE_LIMIT: *keep_out = stage_limit(chain, stage); break;
        case STAGE_GROUP: UNREACHABLE();
        }
    }
    return err;
}

/* ---- the driving scan ---- */

/* The entry at hand of the run. */
static ALWAYS_INLINE Err
entry_take(Exec *exec, ExecShort *chain, bool *keep_out)
{
    Scan *scan = chain->scan;
    if (scan->node.bytes.chunk != NULL) arena_reset(&scan->node.bytes);
    Err err = exec__scan_decode(exec, scan, scan->run_next++, chain->scan_row, keep_out);
    if (err != OK || !*keep_out || scan->filter == NULL) return err;
    ExecTruth truth = EXEC_FALSE;
    err = exec__truth_in(exec, scan->filter, chain->scan_row, &scan->node.bytes, &truth);
    *keep_out = truth == EXEC_TRUE;
    return err;
}

/* The next row of the scan, or the one row of a chain without one. */
static Err
drive(Exec *exec, ExecShort *chain, bool *row_out)
{
    Scan *scan = chain->scan;
    *row_out = false;
    if (chain->drained) return OK;
    if (scan == NULL) {
        chain->drained = *row_out = true;
        return OK;
    }
    while (!*row_out) {
        if (scan->run_next == scan->run.rows) {
            if (chain->tries && !scan->run.end) {
                chain->state = SHORT_DECLINED; /* The one row is not among the first. */
                return OK;
            }
            Err err = exec__scan_fill(exec, scan, SHORT_ROWS);
            if (err != OK || scan->state == SCAN_DONE) return err;
        }
        Err err = entry_take(exec, chain, row_out);
        if (err != OK) return err;
    }
    scan->node.counters.rows++;
    exec->operations++;
    return OK;
}

/* ---- a run ---- */

static Err
limits_start(Exec *exec, ExecShort *chain)
{
    for (u32 i = chain->stage_count; i-- > 0;) {
        Stage *stage = &chain->stage[i];
        if (stage->kind != STAGE_LIMIT) continue;
        Err err = exec__eval_limit(exec, stage->limit, stage->offset, &stage->left, &stage->skip);
        if (err != OK) return err;
        if (stage->left != 0) continue;
        chain->drained = true;
        /* LIMIT 0 below an aggregate leaves it without rows; else there is nothing at all. */
        if (i < chain->group_at && chain->group_at < chain->stage_count) continue;
        chain->state = SHORT_DONE;
        return OK;
    }
    return OK;
}

/* How many entries are certain to be enough; 0: nobody knows. */
static u32
entries_enough(const ExecShort *chain)
{
    if (chain->limit_at == chain->stage_count) return chain->first_only && chain->every_passes;
    const Stage *limit = &chain->stage[chain->limit_at];
    if (limit->left < 0 || limit->left > SHORT_ROWS || limit->skip > SHORT_ROWS) return 0;
    u32 rows = (u32)(limit->left + limit->skip);
    return rows <= SHORT_ROWS ? rows : 0;
}

/* Is the first row that passes the filters all that is wanted? */
static bool
wants_first(const Exec *exec, const ExecShort *chain)
{
    if (exec->want_max == 1) return false;
    if (chain->first_at == chain->stage_count) return chain->first_only && chain->only_filters;
    const Stage *limit = &chain->stage[chain->first_at];
    return limit->left == 1 && limit->skip == 0;
}

/* Evaluate the limits, fetch, decide whether this is a run for the chain. */
static Err
run_begin(Exec *exec, ExecShort *chain)
{
    Scan *scan = chain->scan;
    chain->state = SHORT_OPEN;
    if (scan != NULL) {
        /* Nothing of an earlier run is to be handed over. */
        scan->run = (StoreRun){.end = true};
        scan->run_next = 0;
        if (exec->env->batch_rows != 0) {
            chain->state = SHORT_DECLINED; /* Tests want batches. */
            return OK;
        }
    }
    Err err = limits_start(exec, chain);
    if (err != OK || scan == NULL || chain->drained) return err;
    if (chain->counts) {
        err = exec__scan_count(exec, scan, &chain->count, &chain->counted);
        if (err != OK || chain->counted) return err;
    }
    u32 enough = entries_enough(chain);
    chain->tries = enough == 0 && wants_first(exec, chain);
    bool takes_all = chain->group_at < chain->stage_count;
    if (enough == 0 && !chain->tries && !chain->bounded) {
        chain->state = SHORT_DECLINED;
        return OK;
    }
    exec__rewind(exec, &scan->node);
    scan->exact = enough > 0 || chain->tries;
    u32 want = enough > 0     ? enough
               : chain->tries ? TRY_ROWS
               : takes_all    ? BATCH_ROWS_MAX
                              : FETCH_ROWS;
    err = exec__scan_fill(exec, scan, want);
    bool few = scan->state == SCAN_DONE || (scan->run.end && scan->run.rows <= SHORT_ROWS);
    bool keeps = few || enough > 0 || chain->tries;
    if (err == OK && !keeps) chain->state = SHORT_DECLINED;
    return err;
}

/* All rows into the aggregate. */
static Err
group_feed(Exec *exec, ExecShort *chain, const Stage *stage)
{
    Group *group = stage->group;
    Err err = OK;
    if (chain->counted) {
        exec__aggs_count(&group->aggs, 0, chain->count);
        return OK;
    }
    while (err == OK) {
        bool row, keep;
        err = drive(exec, chain, &row);
        if (err != OK || !row) break;
        if (chain->bytes.chunk != NULL) arena_reset(&chain->bytes);
        err = row_through(exec, chain, 0, chain->group_at, &keep);
        if (err != OK || !keep) continue;
        if (group->node.bytes.chunk != NULL) arena_reset(&group->node.bytes);
        err = exec__aggs_row(exec, &group->aggs, 0, stage->in, &group->node.bytes);
    }
    return err;
}

/* All rows into the aggregate, and out comes one. */
static Err
group_run(Exec *exec, ExecShort *chain, bool *row_out)
{
    const Stage *stage = &chain->stage[chain->group_at];
    Group *group = stage->group;
    Arena *arena = &group->node.bytes;
    if (group->aggs.groups > 0) exec__aggs_clear(&group->aggs);
    Err err = exec__aggs_group(exec, &group->aggs);
    if (err == OK) err = group_feed(exec, chain, stage);
    if (chain->state == SHORT_DECLINED) return err;
    chain->state = SHORT_DONE;
    if (err == OK) err = exec__aggs_finish(exec, &group->aggs);
    arena_reset(arena);
    for (u32 i = 0; err == OK && i < group->aggs.count; i++) {
        err = exec__aggs_value(exec, &group->aggs, 0, i, arena, &stage->row[i]);
    }
    if (err != OK) return err;
    return row_through(exec, chain, chain->group_at + 1, chain->stage_count, row_out);
}

/* The whole run of a chain of one stage. */
static Err
lone_run(Exec *exec, ExecShort *chain, bool *row_out)
{
    Stage *stage = &chain->stage[0];
    chain->state = SHORT_DONE;
    if (stage->kind == STAGE_LOOK) return exec__look(exec, &stage->look, stage->row, row_out);
    *row_out = true;
    return stage_project(exec, chain, stage);
}

Err
exec__short_next(Exec *exec, ExecShort *chain, bool *row_out)
{
    *row_out = false;
    if (chain->lone) return lone_run(exec, chain, row_out);
    if (UNLIKELY(chain->pending != OK)) return chain->pending;
    if (chain->bytes.chunk != NULL) arena_reset(&chain->bytes);
    if (chain->state == SHORT_NEW) {
        Err err = run_begin(exec, chain);
        if (err != OK || chain->state != SHORT_OPEN) return err;
        if (chain->group_at < chain->stage_count) return group_run(exec, chain, row_out);
    }
    while (chain->state == SHORT_OPEN && !*row_out) {
        bool row;
        Err err = drive(exec, chain, &row);
        if (err != OK || chain->state == SHORT_DECLINED) return err;
        if (!row) break;
        err = row_through(exec, chain, 0, chain->stage_count, row_out);
        if (err != OK) return err;
    }
    /* Behind the last entry of a range others may still be put before the next step. */
    if (!*row_out || chain->drained) chain->state = SHORT_DONE;
    return OK;
}

bool
exec__short_at_hand(Exec *exec, ExecShort *chain)
{
    Scan *scan = chain->scan;
    if (!chain->by_hand || chain->state != SHORT_OPEN || chain->drained) return false;
    if (scan->run_next == scan->run.rows || scan->range.recheck) return false;
    bool keep;
    Err err = entry_take(exec, chain, &keep);
    if (err == OK) err = row_through(exec, chain, 0, chain->stage_count, &keep);
    if (err != OK || !keep) {
        chain->pending = err; /* Not kept: an OFFSET; the next step goes on behind it. */
        return false;
    }
    scan->node.counters.rows++;
    if (chain->drained) chain->state = SHORT_DONE;
    return true;
}

void
exec__short_hand_over(ExecShort *chain)
{
    Scan *scan = chain->scan;
    ASSERT(chain->state == SHORT_DECLINED);
    if (scan == NULL || scan->run.rows == 0) return;
    REACHED("exec: the short path handed over what it had fetched");
    scan->exact = false;
    scan->state = SCAN_OPEN;
    scan->run_next = 0;
    scan->fetch_rows = FETCH_ROWS;
}

Err
exec__short_resume(Exec *exec, ExecShort *chain)
{
    Scan *scan = chain->scan;
    bool ahead = scan != NULL && chain->state == SHORT_OPEN && scan->state == SCAN_OPEN;
    if (!ahead || scan->run_next == 0) return OK;
    REACHED("exec: a trip dropped entries of the short path");
    return exec__scan_behind(exec, scan, scan->run_next - 1);
}

bool
exec__short_ends(const ExecShort *chain)
{
    const Scan *scan = chain->scan;
    if (chain->state != SHORT_OPEN || chain->pending != OK) return chain->state == SHORT_DONE;
    return scan->run_next == scan->run.rows && scan->run.end;
}

void
exec__short_close(ExecShort *chain)
{
    if (chain != NULL) arena_free(&chain->bytes);
}

void
exec__short_reset(Exec *exec, ExecShort *chain)
{
    if (chain->state == SHORT_NEW) return;
    chain->state = SHORT_NEW;
    if (chain->bytes.chunk != NULL) arena_reset(&chain->bytes);
    if (chain->lone) {
        if (chain->stage[0].kind == STAGE_LOOK) exec__look_reset(exec, &chain->stage[0].look);
        return;
    }
    if (chain->scan != NULL) exec__node_reset(exec, &chain->scan->node);
    for (u32 i = 0; i < chain->stage_count; i++) {
        Stage *stage = &chain->stage[i];
        if (stage->kind == STAGE_LOOK) exec__look_reset(exec, &stage->look);
        if (stage->kind == STAGE_GROUP && stage->group->aggs.groups > 0) {
            exec__aggs_clear(&stage->group->aggs);
            arena_reset(&stage->group->node.bytes);
        }
    }
}
