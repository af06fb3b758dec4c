/*
 * func_math.c -- numbers: abs, sign, round and the functions of <math.h>.
 *
 * A math function of text that is no number, of a blob or of NULL is NULL; so is a result that is
 * no number.
 */
#include <math.h>

#include "func/func_private.h"
#include "value/number.h"

#define PI 3.141592653589793238462643383279502884

/* Beyond this a real has no fraction. */
#define REAL_WHOLE_LIMIT 4503599627370496.0

static Err
run_abs(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (argv->type == CELL_NULL) return OK;
    if (argv->type != CELL_INT) {
        f64 r = cell_to_real(argv);
        *result_out = cell_real(r < 0 ? -r : r);
        return OK;
    }
    if (argv->u.i == I64_MIN) return err_set(call->msg, ERR_SQL, "integer overflow");
    *result_out = cell_int(argv->u.i < 0 ? -argv->u.i : argv->u.i);
    return OK;
}

static Err
run_round(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)call;
    i64 decimals = 0;
    if (argc == 2) {
        if (argv[1].type == CELL_NULL) return OK;
        decimals = cell_to_int(&argv[1]);
        decimals = decimals > 30 ? 30 : decimals < 0 ? 0 : decimals;
    }
    if (argv[0].type == CELL_NULL) return OK;
    f64 r = cell_to_real(&argv[0]);
    if (r < -REAL_WHOLE_LIMIT || r > REAL_WHOLE_LIMIT) {
        /* Nothing to round. */
    } else if (decimals == 0) {
        r = (f64)(i64)(r + (r < 0 ? -0.5 : 0.5));
    } else {
        char text[350];
        r = number_real(SLICE(text, func__put_fixed(text, r, (u32)decimals)));
    }
    *result_out = cell_real(r);
    return OK;
}

/* The argument as a number, or false for what is none. */
static bool
number_arg(const Cell *cell, f64 *r_out)
{
    Cell number = cell_numeric_value(cell);
    if (!cell_is_number(&number)) return false;
    *r_out = cell_to_real(&number);
    return true;
}

static Err
run_sign(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)call;
    (void)argc;
    f64 r;
    if (number_arg(argv, &r)) *result_out = cell_int((r > 0.0) - (r < 0.0));
    return OK;
}

static Err
run_pi(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)call;
    (void)argc;
    (void)argv;
    *result_out = cell_real(PI);
    return OK;
}

/* Integers stay; reals are rounded by the function behind user_data. */
typedef f64 (*Math1)(f64);
typedef f64 (*Math2)(f64, f64);

typedef struct MathFunction {
    Math1 one;
    Math2 two;
} MathFunction;

static const MathFunction *
math_of(const FuncCall *call)
{
    return call->def->user_data;
}

static Err
run_rounding(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    Cell number = cell_numeric_value(argv);
    if (number.type == CELL_INT) *result_out = cell_int(number.u.i);
    if (number.type == CELL_REAL) *result_out = cell_real(math_of(call)->one(number.u.r));
    return OK;
}

static Err
run_math(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    f64 x, y;
    if (!number_arg(&argv[0], &x)) return OK;
    if (argc == 1) {
        *result_out = cell_real(math_of(call)->one(x));
    } else if (number_arg(&argv[1], &y)) {
        *result_out = cell_real(math_of(call)->two(x, y));
    }
    return OK;
}

/* Logarithms exist for positive numbers only. */
static Err
run_log(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    f64 x;
    if (!number_arg(&argv[0], &x) || x <= 0.0) return OK;
    if (argc == 1) {
        *result_out = cell_real(math_of(call)->one(x));
        return OK;
    }
    f64 base = log(x);
    if (base <= 0.0) return OK;
    x = cell_to_real(&argv[1]);
    if (x > 0.0) *result_out = cell_real(log(x) / base);
    return OK;
}

static f64
to_radians(f64 degrees)
{
    return degrees * (PI / 180.0);
}
static f64
to_degrees(f64 radians)
{
    return radians * (180.0 / PI);
}

#define FLAGS FUNC_INNOCUOUS
#define MATH1(n, run, f)                                                        \
    {                                                                           \
        .name = n, .argc_min = 1, .argc_max = 1, .flags = FLAGS, .scalar = run, \
        .user_data = (void *)&(MathFunction)                                    \
        {                                                                       \
            .one = f                                                            \
        }                                                                       \
    }
#define MATH2(n, f)                                                                  \
    {                                                                                \
        .name = n, .argc_min = 2, .argc_max = 2, .flags = FLAGS, .scalar = run_math, \
        .user_data = (void *)&(MathFunction)                                         \
        {                                                                            \
            .two = f                                                                 \
        }                                                                            \
    }
#define PLAIN(n, low, high, f, run)                                                       \
    {                                                                                     \
        .name = n, .argc_min = low, .argc_max = high, .flags = FLAGS | (f), .scalar = run \
    }

static const FuncDef DEFS[] = {
    PLAIN("abs", 1, 1, FUNC_FALLIBLE, run_abs),
    PLAIN("round", 1, 1, 0, run_round),
    PLAIN("round", 2, 2, 0, run_round),
    PLAIN("sign", 1, 1, 0, run_sign),
    PLAIN("pi", 0, 0, 0, run_pi),
    MATH1("ceil", run_rounding, ceil),
    MATH1("ceiling", run_rounding, ceil),
    MATH1("floor", run_rounding, floor),
    MATH1("trunc", run_rounding, trunc),
    MATH1("acos", run_math, acos),
    MATH1("asin", run_math, asin),
    MATH1("atan", run_math, atan),
    MATH1("cos", run_math, cos),
    MATH1("sin", run_math, sin),
    MATH1("tan", run_math, tan),
    MATH1("acosh", run_math, acosh),
    MATH1("asinh", run_math, asinh),
    MATH1("atanh", run_math, atanh),
    MATH1("cosh", run_math, cosh),
    MATH1("sinh", run_math, sinh),
    MATH1("tanh", run_math, tanh),
    MATH1("exp", run_math, exp),
    MATH1("sqrt", run_math, sqrt),
    MATH1("radians", run_math, to_radians),
    MATH1("degrees", run_math, to_degrees),
    MATH1("ln", run_log, log),
    MATH1("log", run_log, log10),
    MATH1("log10", run_log, log10),
    MATH1("log2", run_log, log2),
    PLAIN("log", 2, 2, 0, run_log),
    MATH2("atan2", atan2),
    MATH2("mod", fmod),
    MATH2("pow", pow),
    MATH2("power", pow),
};

FUNC_FAMILY(func__math, DEFS);
