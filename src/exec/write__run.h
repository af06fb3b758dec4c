/*
 * write__run.h -- run state of the row program: INSERT, UPDATE and DELETE, row by row.
 *
 * One row of a statement goes through the states of WriteState, in SQLite's order.  Wherever other
 * statements may run in between (bodies of triggers, actions of foreign keys), the row program
 * stops, hands the nested statement to the driver in write_run.c and goes on later: the frames are
 * the ExecWrite structs themselves, linked by `caller`, and no C function calls itself.
 *
 * Memory: programs, codecs and row arrays live in exec->arena; what belongs to the row at hand in
 * exec->row_arena, which is reset before the next row.
 */
#pragma once

#include "exec/exec__write.h"
#include "exec/sorter.h"
#include "exec/spool.h"
#include "exec/table_codec.h"

/* What to do about a duplicate: a Conflict other than DEFAULT, or the DO UPDATE of an UPSERT. */
#define WRITE_DO_UPDATE ((u8)100)

typedef enum WriteState {
    WRITE_BEGIN,         /* Read what must be read before the first change. */
    WRITE_NEXT,          /* Take the next source row; then BEFORE triggers fire. */
    WRITE_PREPARE,       /* Reload, rowid, generated columns, NOT NULL, CHECK, entries. */
    WRITE_UNIQUE,        /* The next uniqueness check. */
    WRITE_VICTIM_DELETE, /* REPLACE: delete the row in the way. */
    WRITE_VICTIM_AFTER,
    WRITE_APPLY,     /* Write the row and its entries; then actions of foreign keys. */
    WRITE_RETURNING, /* And then AFTER triggers fire. */
    WRITE_END
} WriteState;

/* An entry of one index; absent when a partial index does not hold the row. */
typedef struct WriteEntry {
    Buf key, value;
    bool present, claims;
} WriteEntry;

typedef struct WriteIndex {
    const PlanIndexWrite *plan;
    const IndexDef *def;
    IndexCodec codec;
    ExecProgram **expr; /* [key_columns], NULL entries for plain columns. */
    ExecProgram *where;
    bool has_expr;
    Cell *cell; /* [codec.columns] scratch */
    WriteEntry fresh, old;
    WriteEntry gone; /* Of a row that is deleted. */
} WriteIndex;

/* One uniqueness check, in the order in which they are made. */
typedef struct WriteUnique {
    bool of_key; /* The rowid, or the key of a WITHOUT ROWID table; else an index. */
    u8 action;
    u32 index;
    u32 upsert; /* WRITE_DO_UPDATE: which clause. */
} WriteUnique;

/* A SET list: of an UPDATE, or of one ON CONFLICT DO UPDATE. */
typedef struct WriteSet {
    u32 count;
    const u16 *column;
    ExecProgram **expr;
    ExecProgram *where; /* UPSERT */
    bool *changed;      /* [column_count + 1]; the last one: the rowid. */
    bool *check;        /* [check_count]: reads a changed column. */
    bool *touched;      /* [index_count] */
    bool changes_key;   /* The rowid or a column of the WITHOUT ROWID key is in it. */
    u8 conflict;
    WriteUnique *unique;
    u32 unique_count;
} WriteSet;

/* A row of the table: cells, and its bytes in the tree. */
typedef struct WriteRow {
    Cell *cell; /* column_count + 1 cells, and what the statement's expressions read behind them. */
    i64 rowid;
    Buf key, record;
} WriteRow;

/* Triggers (or actions of foreign keys) of one moment, half fired. */
typedef struct WriteFire {
    bool active;
    bool actions; /* Actions of foreign keys instead of triggers. */
    u8 event;
    bool before;
    u32 trigger, body; /* Next body to run. */
    bool in_trigger;   /* The bodies of `trigger` are running. */
    const Cell *old, *fresh;
    u8 next; /* WriteState to go on with. */
} WriteFire;

/* Child statements of one trigger: opened at first use, kept. */
typedef struct WriteBodies {
    Exec **child; /* [body_count] */
    ExecProgram *when;
} WriteBodies;

/* A source of one row that needs no batches (write_direct.c). */
typedef enum WriteDirect {
    WRITE_DIRECT_NONE,
    WRITE_DIRECT_VALUES, /* INSERT: the row's values. */
    WRITE_DIRECT_ROWID   /* UPDATE, DELETE: the target's rowid. */
} WriteDirect;

typedef enum WriteValueKind {
    WRITE_VALUE_PARAM,
    WRITE_VALUE_CONST,
    WRITE_VALUE_PROGRAM
} WriteValueKind;

typedef struct WriteValue {
    u8 kind;
    u32 param; /* From 0. */
    Cell constant;
    ExecProgram *program;
} WriteValue;

/* The highest rowid of an AUTOINCREMENT table: one for a statement and all that its triggers do. */
typedef struct WriteSequence {
    struct WriteSequence *next;
    const TableDef *table, *sequence;
    const TableCodec *codec; /* Of sqlite_sequence. */
    bool read, save;
    i64 highest;
    i64 rowid; /* Its row in sqlite_sequence; 0: none yet. */
} WriteSequence;

typedef struct WriteForeign WriteForeign;   /* write_foreign.c */
typedef struct WriteStraight WriteStraight; /* write_straight.c */

struct ExecWrite {
    Exec *exec;
    const PlanWrite *plan;
    const TableDef *table;
    StoreTxn *txn; /* Of this run. */
    TableCodec codec;
    u32 index_count;
    WriteIndex *index;
    ExecProgram **default_expr; /* [column_count], NULL entries: NULL. */
    ExecProgram **generated;    /* [generated_count], in generated_order. */
    ExecProgram **check;
    ExecProgram **host_arg; /* Virtual tables; NULL entries: NULL. */
    Cell *host_value;
    ExecProgram **returning;
    WriteSet set;        /* UPDATE */
    WriteSet *upsert;    /* [upsert_count]; DO NOTHING ones are zero. */
    WriteUnique *unique; /* INSERT */
    u32 unique_count;
    WriteBodies *bodies;    /* [trigger_count] */
    WriteForeign *foreign;  /* NULL: no foreign keys. */
    bool may_replace;       /* Some check may delete rows. */
    bool optimistic_insert; /* Write first, ask later. */
    bool fails_early;       /* INSERT of one row: foreign keys are judged before it counts. */

    WriteRow fresh, old, victim;
    Cell *old_first;   /* OLD before triggers changed the row: for AFTER ones; NULL: as in `old`. */
    Cell *upsert_cell; /* Old row, then the excluded row. */
    Cell *result;      /* [returning_count] */
    Cell *extra_row;   /* Old row and extra cells: what SET expressions read. */
    u8 direct;         /* WriteDirect */
    bool plain;
    bool at_once;            /* ... and one write of one tree, with no mark. */
    WriteStraight *straight; /* A plain INSERT that needs no row of cells; else NULL. */
    u16 *set_stored;         /* A plain UPDATE: positions in the record of what it sets. */
    u32 value_count;
    bool value_simple; /* Parameters and constants alone. */
    WriteValue *value;
    Cell *value_row;
    u16 *not_null; /* [not_null_count] columns that a new row must fill. */
    u16 not_null_count;
    RowSpool collected;
    bool collected_ready;
    bool joins;     /* UPDATE ... FROM: a target may come more than once; the last match counts. */
    Sorter targets; /* Then: the rows by key, and */
    RowBuf target[2];          /* the last match of the target at hand, and of the one before it. */
    StoreCursor *last;         /* For the last rowid. */
    bool last_bound;           /* To the transaction of this run. */
    u64 last_no;               /* *env->write_no when last_rowid was the table's; 0: unknown. */
    TableCodec sequence_codec; /* AUTOINCREMENT */
    bool last_keeps;           /* Nothing but this statement can insert while it runs. */

    /* The present run. */
    bool running;
    bool wrote_at_once;
    bool use_collected;
    SpoolReader collected_reader; /* Without any source: its number alone. */
    u8 state;
    u8 op;                /* PlanWriteKind of the present row: UPSERT turns INSERT into UPDATE. */
    const WriteSet *sets; /* UPDATE: the list in force. */
    bool rowid_given;
    bool checked;       /* All uniqueness checks of the row are done. */
    bool touches_all;   /* UPDATE: the row changed meanwhile, all its entries are written anew. */
    bool victims_gone;  /* A row in the way has been deleted. */
    bool victims_fired; /* Triggers of a replaced row have run ... */
    bool recheck;       /* ... so: check again, without REPLACE. */
    u32 unique_at;
    bool moves; /* UPDATE: the key changes. */
    bool type_checked;
    StoreMark row_mark;
    WriteFire fire;
    i64 rows; /* Changed by this run. */
    i64 saved_changes;
    i64 saved_last_rowid; /* Restored when the trigger of the caller ends. */
    bool last_known;
    i64 last_rowid;           /* The table's, if known. */
    WriteSequence *sequences; /* Root: of this statement and its triggers. */
    ExecWrite *caller;        /* The row program whose trigger runs this one. */
    u32 depth;
    ExecWrite *root;
    i64 foreign_open; /* Root: violations of immediate foreign keys so far. */
};

/* ---- write_open.c ---- */

/* Begin a run: transaction, row counts, trees announced. */
MUST_CHECK Err write__start(ExecWrite *w);

/* Closing: take a child statement from its place; one that writes goes in front of `list`. */
ExecWrite *write__take_child(Exec **child, ExecWrite *list);

/* ---- write_direct.c ---- */

MUST_CHECK Err write__direct_open(ExecWrite *w);
/* The short way for plain statements: allowed (w->plain)?  Then try it; *done_out false: nothing
   has happened, the row program runs from the start. */
MUST_CHECK Err write__plain_open(ExecWrite *w);
MUST_CHECK Err write__plain_run(ExecWrite *w, bool *done_out);
MUST_CHECK Err write__direct_next(ExecWrite *w, const Cell **row_out, bool *found_out);

/* ---- write_straight.c ---- */

/* w->straight, if the statement is of that kind; w->at_once is known. */
MUST_CHECK Err write__straight_open(ExecWrite *w);
/* Put the row; *done_out false: nothing has happened, a longer way must be taken. */
MUST_CHECK Err write__straight_put(ExecWrite *w, bool *done_out);

/* ---- write_host.c: virtual tables ---- */

MUST_CHECK Err write__host_open(ExecWrite *w);
MUST_CHECK Err write__host_begin(ExecWrite *w);
MUST_CHECK Err write__host_next(ExecWrite *w);

/* ---- write_row.c: the new row's values ---- */

/* Does a column of this affinity store the value just as it is? */
static ALWAYS_INLINE bool
write__stores_as_is(u8 affinity, const Cell *cell)
{
    if (UNLIKELY((cell->flags & CELL_POINTER) != 0 || cell->subtype != 0)) return false;
    switch (cell->type) {
    case CELL_INT: return affinity != AFFINITY_TEXT && affinity != AFFINITY_REAL;
    case CELL_TEXT: return affinity <= AFFINITY_TEXT;
    /* A real in a REAL column is stored as it is, but for the sign of zero. */
    case CELL_REAL:
        return affinity <= AFFINITY_BLOB || (affinity == AFFINITY_REAL && cell->u.r != 0);
    default: return true;
    }
}
/* The value as the column stores it. */
MUST_CHECK Err write__store_affinity(ExecWrite *w, u16 column, Cell *cell);
/* INSERT: load source cells into fresh. */
MUST_CHECK Err write__load_values(ExecWrite *w, const Cell *source);
/* The same from w->value, parameters and constants. */
MUST_CHECK Err write__load_direct(ExecWrite *w);
/* UPDATE: fresh = old with the SET list done.  `row` is what its expressions read. */
MUST_CHECK Err write__set_values(ExecWrite *w, const Cell *row);
/* UPDATE after BEFORE triggers: columns not in SET as they stand now. */
void write__reload_unset(ExecWrite *w);
/* Generated columns of `row`; virtual_only: of a row that was read. */
MUST_CHECK Err write__generate(ExecWrite *w, Cell *row, bool virtual_only);
/* NOT NULL, CHECK and STRICT types.  ignore_out: a constraint says to skip the row. */
MUST_CHECK Err write__check_row(ExecWrite *w, bool *ignore_out);
/* STRICT: types of the columns, once a row. */
MUST_CHECK Err write__check_types(ExecWrite *w);
bool write__types_fit(const ExecWrite *w);
/* The conflict clause in force for a constraint with its own clause `own`. */
u8 write__conflict(const ExecWrite *w, u8 own);
/* A constraint fails: what `action` (ABORT, FAIL, ROLLBACK) leaves standing. */
void write__set_undo(ExecWrite *w, u8 action);

/* ---- write_rowid.c ---- */

/* The rowid given by the statement, or a new one (w->fresh.rowid). */
MUST_CHECK Err write__new_rowid(ExecWrite *w);
/* As an integer, or ERR_MISMATCH. */
MUST_CHECK Err write__must_be_int(ExecWrite *w, Cell *cell);
/* Begin with an AUTOINCREMENT table; note a new rowid. */
MUST_CHECK Err write__sequence_start(ExecWrite *w);
MUST_CHECK Err write__sequence_step(ExecWrite *w);
/* The outermost statement ends well: remember. */
MUST_CHECK Err write__sequence_save(ExecWrite *w);

/* ---- write_apply.c: rows and entries in the store ---- */

/* Read the row with key row->key; false: it is gone. */
MUST_CHECK Err write__read_row(ExecWrite *w, WriteRow *row, bool *found_out);
/* Entry of `row` in one index. */
MUST_CHECK Err write__entry(ExecWrite *w, WriteIndex *index, const Cell *row, i64 rowid,
                            WriteEntry *entry);
/* Key, record and entries of the fresh row (of the old one too for UPDATE). */
MUST_CHECK Err write__encode_fresh(ExecWrite *w);
/* Write.  *clash_out: number of the index in whose key a row is in the way, WRITE_CLASH_KEY or
   WRITE_CLASH_NONE; after a clash everything since w->row_mark has been undone. */
#define WRITE_CLASH_NONE (-1)
#define WRITE_CLASH_KEY  (-2)
MUST_CHECK Err write__apply(ExecWrite *w, i32 *clash_out, bool *newer_out);
/* Delete the row and its entries. */
MUST_CHECK Err write__delete_row(ExecWrite *w, WriteRow *row);
MUST_CHECK Err write__truncate(ExecWrite *w);
/* Tell the session about the change made. */
void write__preupdate(ExecWrite *w, ExecChange change, const WriteRow *old, const WriteRow *fresh);
void write__changed(ExecWrite *w, ExecChange change, i64 rowid);

/* ---- write_unique.c ---- */

/* Order of the checks for INSERT (set NULL) or for a SET list. */
MUST_CHECK Err write__order_checks(ExecWrite *w, const WriteSet *set, WriteUnique **unique_out,
                                   u32 *count_out);
typedef enum WriteVerdict {
    WRITE_FREE,     /* Nothing in the way. */
    WRITE_SKIP,     /* IGNORE: leave the row. */
    WRITE_REPLACE,  /* w->victim is to be deleted. */
    WRITE_UPDATE_IT /* w->old is the row in the way, to be updated. */
} WriteVerdict;
MUST_CHECK Err write__check_unique(ExecWrite *w, const WriteUnique *unique,
                                   WriteVerdict *verdict_out);
/* UNIQUE constraint failed, of the key or an index. */
Err write__fail_unique(ExecWrite *w, const WriteUnique *unique, u8 action);

/* ---- write_fire.c ---- */

/* Begin firing; w->state becomes `next` when done. */
void write__fire(ExecWrite *w, u8 event, bool before, const Cell *old, const Cell *fresh, u8 next);
/* The same with the actions of foreign keys that refer to the row. */
void write__fire_actions(ExecWrite *w, u8 event, const Cell *old, const Cell *fresh, u8 next);
bool write__has_triggers(const ExecWrite *w, u8 event);
/* Does the SET list in force change one of these columns (COLUMN_ROWID allowed)? */
bool write__sets_any(const ExecWrite *w, const u16 *column, u16 count);
/* Go on firing: until done (w->fire.active is false), or a nested write must run (*call_out). */
MUST_CHECK Err write__fire_on(ExecWrite *w, ExecWrite **call_out);
/* last_insert_rowid() and changes() as they were before the trigger. */
void write__restore_counts(ExecWrite *w);

/* ---- write_foreign.c ---- */

MUST_CHECK Err write__foreign_open(ExecWrite *w);
void write__foreign_close(ExecWrite *w);
ExecWrite *write__foreign_take_children(ExecWrite *w, ExecWrite *list);
/* Count the violations that the change of a row makes and mends: what concerns the old row, before
   the change; what concerns the new one, after it. */
MUST_CHECK Err write__foreign_before(ExecWrite *w, u8 event, const Cell *old, const Cell *fresh);
MUST_CHECK Err write__foreign_after(ExecWrite *w, u8 event, const Cell *old, const Cell *fresh);
/* Firing actions: go to the next one that has something to do ... */
MUST_CHECK Err write__next_action(ExecWrite *w, bool *found_out);
/* ... and where its body, its run state and its registers are. */
void write__action_body(ExecWrite *w, const Plan **plan_out, Exec ***child_out, u32 *old_reg_out,
                        u32 *new_reg_out);
/* The outermost statement is done: no immediate foreign key may be violated. */
MUST_CHECK Err write__foreign_end(ExecWrite *w);
