/*
 * window.h -- the run state of a WINDOW node (private to exec/): rows, frames, calls.
 *
 * Rows are numbered from 0 on, in the order of the input, over all partitions; the buffer holds
 * those that some frame still needs; beyond the memory budget the older ones of them stand in the
 * temporary file (window_pages.c).  Every frame walks through the rows by itself with three
 * cursors: `end` takes rows in (step), `start` takes them out (inverse), `current` gives a row its
 * results.  Rows leave the node once all frames have passed them.
 *
 * The order in which rows are taken in and out is SQLite's, step by step: sums of reals and host
 * functions show it.
 */
#pragma once

#include "exec/node.h"
#include "exec/vexpr.h"
#include "value/sum.h"

/* ---- rows (window_rows.c) ---- */

typedef enum WinMark {
    WIN_PARTITION = 1, /* The row begins a partition, */
    WIN_PEERS = 2      /* a group of peers. */
} WinMark;

typedef struct WinPages WinPages;

typedef struct WinRows {
    u32 columns;
    Cell **cell; /* [columns][capacity] */
    u8 *mark;    /* [capacity] WinMark */
    u64 first;   /* Number of the row in place 0. */
    u32 count, capacity;
    bool copies;        /* The input's bytes do not last. */
    Arena bytes, spare; /* What cells point to; the second while moving. */
    MemAccount *account;
    u64 charged_bytes;
    WinPages *pages; /* Rows before `first`; NULL: none is kept. */
} WinRows;

MUST_CHECK Err exec__win_rows_open(Exec *exec, WinRows *rows, u32 columns, bool copies);
void exec__win_rows_free(WinRows *rows);
void exec__win_rows_clear(WinRows *rows);
/* Room for `more` rows behind the last one. */
MUST_CHECK Err exec__win_rows_reserve(WinRows *rows, u32 more);
/* Copy the live rows of `batch` into column `column`, from place `at` on. */
MUST_CHECK Err exec__win_rows_column(WinRows *rows, u32 column, u32 at, const Vec *vec,
                                     const Batch *batch, bool copy);
/* Forget rows below `low`; only when it pays.  The columns from `results_from` up to `results_to`
   are left alone but for moving. */
MUST_CHECK Err exec__win_rows_prune(WinRows *rows, u64 low, u32 results_from, u32 results_to);

/* Forget the first `gone` rows of the arrays. */
MUST_CHECK Err exec__win_rows_shift(WinRows *rows, u32 gone, u32 results_from, u32 results_to);

/* ---- rows in the temporary file (window_pages.c) ---- */

MUST_CHECK Err exec__win_pages_open(Exec *exec, WinRows *rows, u32 frames);
void exec__win_pages_free(WinRows *rows); /* Without pages: nothing. */
/* Make pages of all rows of the arrays but the last few; *moved_out rows are to be forgotten there.
   Column c has values in rows below computed[c]; unless that is U64_MAX it is a result, of no use
   in rows below `given`. */
MUST_CHECK Err exec__win_pages_move(WinRows *rows, const u64 *computed, u64 given, u32 *moved_out);
/* Pages with no row from `low` on may go. */
void exec__win_pages_prune(WinRows *rows, u64 low);
/* What reading a page gave. */
Err exec__win_pages_err(const WinRows *rows);
/* The cells of a row, and of the `run` rows with it from that row on, good until a few other pages
   have been looked at. */
Cell *exec__win_page_cell(const WinRows *rows, u32 column, u64 row);
bool exec__win_page_marked(const WinRows *rows, u64 row, u8 mark);
u32 exec__win_page_run(const WinRows *rows, u64 row);
MUST_CHECK Err exec__win_page_store(WinRows *rows, u32 column, u64 row, const Cell *value);

static inline u64
exec__win_total(const WinRows *rows)
{
    return rows->first + rows->count;
}

static inline Cell *
exec__win_cell(const WinRows *rows, u32 column, u64 row)
{
    if (UNLIKELY(row < rows->first)) return exec__win_page_cell(rows, column, row);
    return &rows->cell[column][row - rows->first];
}

static inline bool
exec__win_marked(const WinRows *rows, u64 row, u8 mark)
{
    if (UNLIKELY(row < rows->first)) return exec__win_page_marked(rows, row, mark);
    return (rows->mark[row - rows->first] & mark) != 0;
}

/* Give a row a result. */
static inline Err
exec__win_store(WinRows *rows, u32 column, u64 row, const Cell *value)
{
    if (UNLIKELY(row < rows->first)) return exec__win_page_store(rows, column, row, value);
    rows->cell[column][row - rows->first] = *value;
    return OK;
}

/* ---- calls (window_call.c) ---- */

typedef enum WinKind {
    WIN_GENERIC, /* step, inverse and value of the FuncDef */
    WIN_COUNT,   /* The kernels of value/func.h */
    WIN_SUM,
    WIN_BEST, /* min() and max() over a frame whose start moves: a queue of candidates. */
    WIN_PURE  /* From the cursors alone: FuncWindow */
} WinKind;

/* Candidates for the best value, best first; each is better than all behind it. */
typedef struct WinQueue {
    u64 *row;
    u32 head, count, capacity;
} WinQueue;

/* EXCLUDE: what the rows [from, to) add to a count or a sum of integers. */
typedef struct WinSkip {
    u64 from, to;
    i128 whole;
    i64 count;
} WinSkip;

typedef struct WinCall {
    const PlanWindowCall *plan;
    u8 kind;        /* WinKind */
    bool moves;     /* Takes rows in and out; else it is computed from scratch for each row. */
    bool by_row;    /* Rows of one unit have results of their own. */
    bool begun;     /* There is a state to free. */
    FuncCall call;  /* WIN_PURE: unused. */
    u32 *arg;       /* Columns of the arguments. */
    u32 filter;     /* Column of the filter's truth (0 or 1); U32_MAX: none. */
    Cell *argv;     /* Scratch. */
    Cell value;     /* For the rows being given results. */
    i64 groups;     /* dense_rank() */
    WinQueue queue; /* WIN_BEST */
    WinSkip skip;
} WinCall;

/* ---- frames (window_frame.c) ---- */

typedef struct WinFrame {
    const PlanFrame *plan;
    ExecProgram *offset[2]; /* Of start and end; NULL: none. */
    WinCall *call;
    u32 call_count;
    bool computes; /* Some call takes rows in. */
    bool nested;   /* Rows arrive only once the frame before has passed them. */
    bool may_fail; /* The frames behind it are nested. */
    bool by_row;   /* EXCLUDE: results are computed from scratch for each row. */
    u64 arrived;   /* Rows that the frame has taken up. */
    u64 seen;      /* The same, and one that told it that a partition is complete. */
    u64 part;      /* First row of the partition. */
    u64 limit;     /* Behind the last row of the partition that has arrived. */
    u64 start, current, end;
    bool open;     /* A partition is being worked on, */
    bool flushing; /* and all its rows are there. */
    u8 phase;      /* While flushing. */
    i64 left[2];   /* ROWS and GROUPS: units until start and end begin to move. */
    Cell range[2]; /* RANGE: the offsets. */
    u64 group_end; /* EXCLUDE: behind the peers of the current row, as far as known. */
    u64 group;     /* First peer of the current row. */
} WinFrame;

typedef struct WinSource WinSource;

/* How a frame stood when the last batch was begun. */
typedef struct WinSaved {
    WinFrame frame;
    WinCall *call;
    u8 *states;
} WinSaved;

typedef struct Win {
    ExecNode node;
    const PlanWindow *plan;
    WinRows rows;
    WinFrame *frame;
    u32 frame_count;
    u32 *partition, *order; /* Columns of the keys. */
    WinSource *source;      /* Columns that are computed when rows arrive. */
    u32 source_count;
    bool by_batch; /* All sources are total. */
    Cell *row;     /* Scratch: a row of the input. */
    u64 shown;     /* Rows given. */
    bool in_ahead; /* The input's last batch was taken in and not resumed since. */
    u64 in_first;  /* Its first row. */
    bool careful;  /* Some state cannot be copied: reads ahead nothing while streaming. */
    WinSaved *saved;
    bool ended;    /* No input is left, */
    Err in_err;    /* or this is what it ended with. */
    Err err;       /* What a frame ended with. */
    Arena results; /* Bytes of results not yet given. */
    Arena results_spare;
    Arena scratch; /* For one call of a function. */
    u32 moves;     /* Since interrupts were looked for. */
    u64 held;      /* As exec__spill_due() knows it. */
    u64 *computed; /* Scratch: by column, the rows that have values. */
} Win;

/* One move of a frame: a row that arrives, or one round at the end of a partition.  *waits_out:
   there is nothing to do before more rows are there. */
MUST_CHECK Err exec__win_frame_move(Exec *exec, Win *win, WinFrame *frame, bool *waits_out);
void exec__win_frame_reset(WinFrame *frame);
/* The lowest row that the frame still needs. */
u64 exec__win_frame_low(const WinFrame *frame);

MUST_CHECK Err exec__win_call_open(Exec *exec, Win *win, const PlanFrame *frame, WinCall *call);
void exec__win_call_close(WinCall *call);
/* A partition begins, or a row computed from scratch. */
void exec__win_call_begin(WinCall *call);
void exec__win_call_end(WinCall *call);
/* Rows [from, to) enter or leave the frame. */
MUST_CHECK Err exec__win_call_step(Exec *exec, Win *win, WinCall *call, u64 from, u64 to);
MUST_CHECK Err exec__win_call_inverse(Exec *exec, Win *win, WinCall *call, u64 from, u64 to);
/* call->value, for all rows of the unit that begins with frame->current. */
MUST_CHECK Err exec__win_call_value(Exec *exec, Win *win, const WinFrame *frame, WinCall *call);
/* The result for one row, where call->by_row. */
MUST_CHECK Err exec__win_call_row(Exec *exec, Win *win, const WinFrame *frame, WinCall *call,
                                  u64 row, Cell *out);
static inline bool
exec__win_passes(const Win *win, const WinCall *call, u64 row)
{
    return call->filter == U32_MAX || exec__win_cell(&win->rows, call->filter, row)->u.i != 0;
}
/* One row into the function's step or inverse. */
MUST_CHECK Err exec__win_feed(Exec *exec, Win *win, WinCall *call, u64 row, FuncStep step);
/* What the function says of its state. */
MUST_CHECK Err exec__win_result(Exec *exec, Win *win, WinCall *call, FuncValue value, Cell *out);
/* The number that nth_value() asks for; false: it is none. */
bool exec__win_nth(const Cell *cell, i64 *number_out);
MUST_CHECK Err exec__win_nth_failed(Exec *exec);

/* ---- EXCLUDE (window_exclude.c) ---- */

/* The result for one row, over the frame's rows without [skip, skip_end), but with `keep` if it
   lies there. */
MUST_CHECK Err exec__win_call_scan(Exec *exec, Win *win, const WinFrame *frame, WinCall *call,
                                   u64 skip, u64 skip_end, u64 keep, Cell *out);

/* ---- sources (window_source.c) ---- */

/* Find or make the column of an expression over the input row. */
MUST_CHECK Err exec__win_source(Exec *exec, Win *win, const PlanExpr *expr, bool truth,
                                bool subtype, u32 *column_out);
/* Room for all sources that the plan may need. */
MUST_CHECK Err exec__win_sources_open(Exec *exec, Win *win);
/* Take a batch in: its rows and what is computed from them, with marks. */
MUST_CHECK Err exec__win_take(Exec *exec, Win *win, const Batch *in);
