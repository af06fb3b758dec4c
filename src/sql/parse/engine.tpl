/*
 * Made by lemon from grammar.y with engine.tpl, our own engine for lemon's tables.
 *
 * The engine keeps a stack of (state, value).  A state above YY_MAX_SHIFT is a reduction that waits
 * for its turn: lemon turns "shift, then reduce whatever comes" into one action, and the reduction
 * runs when the next token is there, so that rules may look at it (P->current).
 *
 * lemon puts its output at each line that holds just two percent signs.
 */
/* The include section of the grammar. */
%%
/* Token codes; they stand in grammar.h as well. */
%%
#ifndef INTERFACE
#define INTERFACE 0
#endif
/* Types and sizes. */
%%
#define YY_NLOOKAHEAD ((int)(sizeof(yy_lookahead) / sizeof(yy_lookahead[0])))
/* The tables. */
%%
#ifdef YYFALLBACK
static const YYCODETYPE yyFallback[] = {
%%
};
#endif
#if 0 /* Names of symbols and rules, for traces that this engine does not make. */
%%
%%
#endif
#if 0 /* Destructors: everything lives in an arena. */
%%
#endif

/* 32 bytes, so that moving by rows is a shift. */
typedef struct StackRow {
    YYMINORTYPE minor;
    u64 spare;
    u32 spare2;
    u32 state;
} StackRow;
STATIC_ASSERT(sizeof(StackRow) == 32);

/* Rows of the stack before it moves to the heap; enough for nearly every statement. */
#define FIRST_STACK_ROWS 100

typedef struct Engine {
    StackRow *top;
    StackRow *last; /* Of those there is room for. */
    StackRow *deepest; /* To reach it is an error. */
    StackRow *rows;
    u32 depth_max;
    StackRow first_rows[FIRST_STACK_ROWS];
} Engine;

static void
engine_init(Engine *engine, u32 depth_max)
{
    engine->rows = engine->top = engine->first_rows;
    engine->depth_max = depth_max - 1;
    engine->deepest = engine->rows + engine->depth_max;
    engine->last = engine->rows + FIRST_STACK_ROWS - 1;
    engine->rows[0].state = 0;
}

static void
engine_free(Engine *engine)
{
    if (engine->rows != engine->first_rows) mem_free(engine->rows);
}

static NOINLINE bool
engine_grow(Engine *engine)
{
    size_t used = (size_t)(engine->top - engine->rows) + 1;
    size_t room = used * 2 + 100;
    StackRow *rows;
    if (engine->rows == engine->first_rows) {
        rows = mem_alloc(room * sizeof(*rows));
        if (rows != NULL) memcpy(rows, engine->rows, used * sizeof(*rows));
    } else {
        rows = mem_realloc(engine->rows, room * sizeof(*rows));
    }
    if (rows == NULL) return false;
    engine->rows = rows;
    engine->top = rows + used - 1;
    engine->last = rows + room - 1;
    engine->deepest = rows + engine->depth_max;
    return true;
}

static void
engine_out_of_memory(Parser *P)
{
%%
}

/* For each rule: its left side, and minus the number of symbols on its right side. */
static const YYCODETYPE rule_left[] = {
%%
};
static const signed char rule_size[] = {
%%
};

#define yytestcase(condition)
#define assert(condition) DCHECK(condition)

/* What to do in `state` when `code` comes. */
static ALWAYS_INLINE u32
engine_action(u32 state, u32 code)
{
    u32 base = yy_shift_ofst[state];
    if (LIKELY(yy_lookahead[base + code] == code)) return yy_action[base + code];
#ifdef YYFALLBACK
    u32 fallback = yyFallback[code];
    if (fallback != 0 && yy_lookahead[base + fallback] == fallback) {
        return yy_action[base + fallback];
    }
#endif
#ifdef YYWILDCARD
    if (yy_lookahead[base + YYWILDCARD] == YYWILDCARD && code > 0) {
        return yy_action[base + YYWILDCARD];
    }
#endif
    return yy_default[state];
}

/* Run the code of a rule.  yymsp is the top row; the value of the left side replaces the first of
   the right side's. */
static ALWAYS_INLINE void
engine_rule(Parser *P, u32 yyruleno, StackRow *yymsp)
{
    switch (yyruleno) {
%%
    }
}

static void engine_syntax_error(Parser *P);

/* Feed P->current under the given code; 0 is the end.  False: the stack could not grow. */
static ALWAYS_INLINE bool
engine_feed(Engine *engine, Parser *P, u32 code)
{
    StackRow *top = engine->top;
    u32 action = top->state;
    for (;;) {
        if (action <= YY_MAX_SHIFT) action = engine_action(action, code);
        if (action < YY_MIN_REDUCE) break;
        u32 rule = action - YY_MIN_REDUCE;
        engine_rule(P, rule, top);
        top += (ptrdiff_t)rule_size[rule];
        action = yy_action[yy_reduce_ofst[top->state] + rule_left[rule]];
        top++;
        top->state = action;
        /* The next rule may be an empty one, and its code writes behind the top. */
        if (UNLIKELY(top >= engine->last)) {
            engine->top = top;
            if (!engine_grow(engine)) return false;
            top = engine->top;
        }
    }
    engine->top = top;
    if (UNLIKELY(action > YY_MAX_SHIFTREDUCE)) {
        if (action == YY_ERROR_ACTION) engine_syntax_error(P);
        return true; /* Else the end was accepted. */
    }
    top++;
    top->state = action > YY_MAX_SHIFT ? action + YY_MIN_REDUCE - YY_MIN_SHIFTREDUCE : action;
    top->minor.yy0 = P->current;
    engine->top = top;
    return top < engine->last || engine_grow(engine);
}

#if 0 /* Nothing to do when a parse fails: the driver stops at the first error. */
%%
#endif
static void
engine_syntax_error(Parser *P)
{
%%
}
#if 0 /* Nothing to do at the end. */
%%
#endif
