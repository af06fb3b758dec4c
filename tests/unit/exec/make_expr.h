/*
 * make_expr.h -- random expressions as SQL text.
 */
#pragma once

#include "base/base.h"
#include "unit/cmocka_all.h"

typedef struct Make {
    Rng rng;
    Buf out;
    const char *const *column;
    u32 columns;
} Make;

static inline void
put(Make *make, const char *text)
{
    assert_int_equal(buf_append_text(&make->out, text), OK);
}

static inline u32
pick(Make *make, u32 count)
{
    return (u32)rng_below(&make->rng, count);
}

static const char *const literals[] = {
    "0",
    "1",
    "2",
    "-1",
    "10",
    "20",
    "1.5",
    "2.0",
    "0.0",
    "-4.0",
    "1e300",
    "1e-5",
    "'1'",
    "'abc'",
    "''",
    "'20'",
    "'2.0'",
    "'Two'",
    "' 3 '",
    "'1e1x'",
    "x'3130'",
    "x''",
    "NULL",
    "NULL",
    "9223372036854775807",
    "-9223372036854775808",
    "9007199254740993",
    "9007199254740992.0",
};
static const char *const binary[] = {"+", "-",  "*", "/",  "%", "||", "&",  "|",      "<<",  ">>",
                                     "=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT", "AND", "OR"};
static const char *const functions[] = {"abs", "length", "typeof", "upper", "lower",
                                        "hex", "quote",  "trim",   "sign",  "unicode"};
static const char *const collations[] = {"BINARY", "NOCASE", "RTRIM"};
static const char *const expr_types[] = {"INT", "REAL", "TEXT", "BLOB", "NUMERIC"};

static inline void make_expr(Make *make, u32 depth);

static inline void
make_list(Make *make, u32 depth, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        if (i > 0) put(make, ",");
        make_expr(make, depth);
    }
}

static inline void
make_leaf(Make *make)
{
    if (make->columns > 0 && pick(make, 5) < 3) {
        put(make, make->column[pick(make, make->columns)]);
    } else {
        put(make, literals[pick(make, COUNT_OF(literals))]);
    }
}

static inline void
make_case(Make *make, u32 depth)
{
    put(make, "CASE ");
    if (pick(make, 2) == 0) make_expr(make, depth);
    for (u32 i = 0; i <= pick(make, 2); i++) {
        put(make, " WHEN ");
        make_expr(make, depth);
        put(make, " THEN ");
        make_expr(make, depth);
    }
    if (pick(make, 2) == 0) {
        put(make, " ELSE ");
        make_expr(make, depth);
    }
    put(make, " END");
}

static inline void
make_special(Make *make, u32 depth)
{
    switch (pick(make, 9)) {
    case 0:
        put(make, "NOT ");
        make_expr(make, depth);
        break;
    case 1:
        put(make, "- ");
        make_expr(make, depth);
        break;
    case 2:
        put(make, "~");
        make_expr(make, depth);
        break;
    case 3:
        make_expr(make, depth);
        put(make, pick(make, 2) ? " IS NULL" : " NOT NULL");
        break;
    case 4:
        make_expr(make, depth);
        put(make, pick(make, 2) ? " BETWEEN " : " NOT BETWEEN ");
        make_expr(make, depth);
        put(make, " AND ");
        make_expr(make, depth);
        break;
    case 5:
        make_expr(make, depth);
        put(make, pick(make, 2) ? " IN (" : " NOT IN (");
        make_list(make, depth, pick(make, 3) == 0 ? 12 : 1 + pick(make, 4));
        put(make, ")");
        break;
    case 6: make_case(make, depth); break;
    case 7:
        put(make, "(");
        make_list(make, depth, 2);
        put(make, pick(make, 2) ? ")<(" : ")=(");
        make_list(make, depth, 2);
        put(make, ")");
        break;
    default:
        make_expr(make, depth);
        put(make, pick(make, 2) ? " IS TRUE" : " IS NOT FALSE");
        break;
    }
}

static inline void
make_expr(Make *make, u32 depth)
{
    if (depth == 0) {
        make_leaf(make);
        return;
    }
    put(make, "(");
    switch (pick(make, 8)) {
    case 0: make_leaf(make); break;
    case 1:
        put(make, "CAST(");
        make_expr(make, depth - 1);
        put(make, " AS ");
        put(make, expr_types[pick(make, COUNT_OF(expr_types))]);
        put(make, ")");
        break;
    case 2:
        put(make, functions[pick(make, COUNT_OF(functions))]);
        put(make, "(");
        make_expr(make, depth - 1);
        put(make, ")");
        break;
    case 3:
        put(make, pick(make, 2) ? "coalesce(" : "nullif(");
        make_list(make, depth - 1, 2);
        put(make, ")");
        break;
    case 4:
        make_expr(make, depth - 1);
        put(make, " COLLATE ");
        put(make, collations[pick(make, COUNT_OF(collations))]);
        break;
    case 5: make_special(make, depth - 1); break;
    default:
        make_expr(make, depth - 1);
        put(make, " ");
        put(make, binary[pick(make, COUNT_OF(binary))]);
        put(make, " ");
        make_expr(make, depth - 1);
        break;
    }
    put(make, ")");
}
