/*
 * work__shift.h -- one connection's work; private to work.c and rude.c.
 */
#pragma once

#include "work.h"

/* What everything looks like: a row for each client. */
#define SHIFT_ALL                                                                             \
    "SELECT ?1, t.who, t.n, (SELECT count(*) FROM log WHERE who = t.who), "                   \
    "(SELECT ifnull(max(n), 0) FROM log WHERE who = t.who), "                                 \
    "(SELECT n FROM h WHERE id = 1), (SELECT count(*) FROM log), "                            \
    "(SELECT count(*) FROM (SELECT 1 FROM log GROUP BY pair HAVING count(*) <> max(size))), " \
    "(SELECT n FROM h WHERE id = 2)"                                                          \
    " FROM t ORDER BY t.who"

typedef struct Shift {
    Model *model;
    u32 who, db;
    Data *data; /* Of the database. */
    Way way;
    TokenKind token_kind;
    char token[TOKEN_TEXT_MAX];
    i64 dies_ns; /* Wall time from which on the token is not good. */
    Talk talk;
    u32 calm;        /* Phase that was calm when the connection was made; 0: none. */
    bool is_certain; /* Is the fate of everything tried known? */
    u64 last;        /* Then: the newest number. */
} Shift;

bool shift__is_calm(const Shift *shift);
/* May a request fail in this way?  If not the run fails. */
void shift__code_check(const Shift *shift, const char *code, const char *what);
/* True: there is an answer, and it is good. */
bool shift__ask(Shift *shift, u32 lane, const Ask *ask, Answer *answer, bool *over_out);
void shift__pair_name(Shift *shift, char pair[TAG_BYTES]);
Ask shift__insert(const Shift *shift, u64 n, u64 size, const char *pair);
/* False, here and below: the connection is over, or is to end. */
MUST_CHECK bool shift__own_find(Shift *shift);
MUST_CHECK bool shift__read_all(Shift *shift, u32 lane, bool as_cursor);
void shift__all_check(Shift *shift, const Answer *answer, const u64 *least);

/* ---- bad manners (rude.c) ---- */
MUST_CHECK bool rude_act(Shift *shift);
MUST_CHECK bool rude_traces(Shift *shift, u32 lane);
/* Of one who may only read. */
MUST_CHECK bool rude_reader(Shift *shift, u32 lane);
/* Of one whose token is not good; `opened`: it was not told so yet. */
void rude_stranger(Shift *shift, bool opened);
