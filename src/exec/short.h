/*
 * short.h -- the short path: rows one by one, without batches (private to exec/).
 *
 * A chain is a plan, or the plan of a subquery, of these nodes: look-ups of one row by its whole
 * key, one scan of a bounded range at the bottom, filters, projections, loop joins whose inner side
 * is a look-up, LIMIT, one aggregate without keys.  It gives what the operators would give.
 *
 * It runs where few rows are in question: the scan's first fetch must come to the end of its range,
 * unless a small LIMIT stands above it, or one row that is among the first is enough.  Else the
 * chain declines before it has given a row, and the operators go on with what was fetched.
 */
#pragma once

#include "exec/look.h"

typedef enum ShortState {
    SHORT_NEW,
    SHORT_OPEN,    /* Rows may follow. */
    SHORT_DONE,    /* There is no further row. */
    SHORT_DECLINED /* The operators do this run. */
} ShortState;

typedef enum StageKind {
    STAGE_LOOK,    /* The row of a key, behind the cells so far; none: the row is dropped, or left
                      with NULLs (`outer`). */
    STAGE_FILTER,  /* program[0] */
    STAGE_PROJECT, /* `in` to `row` */
    STAGE_LIMIT,
    STAGE_GROUP /* Feeds `in`; when all rows are in, `row` is the one row. */
} StageKind;

typedef struct Stage {
    u8 kind; /* StageKind */
    bool outer;
    u32 columns; /* Cells that it makes. */
    Cell *in;
    Cell *row;
    const PlanNode *join; /* LOOK: registers to set before; NULL: none. */
    ExecProgram *condition;
    Look look;
    ExecProgram **program; /* PROJECT: NULL entries pass a cell. */
    const u32 *pass;
    ExecProgram *limit, *offset;
    i64 left, skip;      /* -1: no limit. */
    struct Group *group; /* Of the operator, whose aggregates it uses. */
} Stage;

typedef struct ExecShort {
    Scan *scan; /* The driving scan; NULL: one row without cells. */
    Cell *scan_row;
    u32 stage_count;
    Stage *stage;      /* In the order in which a row passes them. */
    u32 group_at;      /* The aggregate; stages behind it see its one row.  stage_count: none. */
    u32 limit_at;      /* A LIMIT that every entry of the scan counts for; stage_count: none. */
    u32 first_at;      /* A LIMIT with at most filters below it; stage_count: none. */
    bool first_only;   /* Nobody asks for a second row. */
    bool every_passes; /* Every entry of the scan gives a row. */
    bool only_filters; /* ... or would but for filters. */
    bool bounded;      /* The scan's range has a far end. */
    bool tries;        /* This run looks for one row among the first entries. */
    bool by_hand;      /* A row costs no more than decoding: no look-ups, no programs. */
    bool lone;         /* One row at most, by one stage: a look-up, or expressions over nothing. */
    bool counts;       /* The aggregate is fed by the scan itself, and all are count(*). */
    bool counted;      /* ... and in this run there were `count`. */
    u64 count;
    bool drained; /* No further row of the scan is wanted. */
    u8 state;     /* ShortState */
    Err pending;  /* What a step at hand met; raised by the next one. */
    Arena bytes;  /* What programs made for the row at hand. */
} ExecShort;

/* *chain_out NULL: the plan has another shape.  The rows will be put into `row`.  `first_only`:
   only the first one will be asked for. */
MUST_CHECK Err exec__short_open(Exec *exec, const PlanNode *root, bool first_only, Cell *row,
                                ExecShort **chain_out);
void exec__short_close(ExecShort *chain); /* NULL is allowed. */
/* Begin a run.  Does no work. */
static inline void
exec__short_start(ExecShort *chain)
{
    chain->state = SHORT_NEW;
    chain->drained = chain->counted = false;
    chain->pending = OK;
}
/* The next row; *row_out false and state DECLINED: rewind the operators and call
   exec__short_hand_over(). [parks] */
MUST_CHECK Err exec__short_next(Exec *exec, ExecShort *chain, bool *row_out);
/* The same if it needs no more than decoding what lies at hand; false: use exec__short_next(). */
bool exec__short_at_hand(Exec *exec, ExecShort *chain);
/* The operators have been rewound: they go on with what the scan has fetched. */
void exec__short_hand_over(ExecShort *chain);
/* A trip: what was fetched behind the row shown is stale. */
MUST_CHECK Err exec__short_resume(Exec *exec, ExecShort *chain);
/* Is it known that no row follows, unless others are put behind the one shown? */
bool exec__short_ends(const ExecShort *chain);
/* The end of a run that it has done. */
void exec__short_reset(Exec *exec, ExecShort *chain);
