/*
 * number.h -- text of numbers and numbers from text, by SQLite 3.54's rules, without the C
 * library: the locale never matters.
 *
 * Reals are read and written with powers of ten of 96 bits, as SQLite does, so that the last digit
 * agrees too.
 */
#pragma once

#include "base/base.h"

/* Room for the text of any int64 or real with 17 digits, without a NUL. */
#define NUMBER_TEXT_BYTES 32

/* Write the text; returns its length.  No NUL is added. */
size_t number_put_int(char *p, i64 i);
/* As in `SELECT r` : 1.0, 1.0e+21, Inf, -Inf; -0.0 prints 0.0; NaN prints NaN. */
size_t number_put_real(char *p, f64 r);

typedef enum NumberKind {
    NUMBER_NONE, /* No digits where a number should begin. */
    NUMBER_INT,  /* Digits only, and they fit int64. */
    NUMBER_REAL  /* With point or exponent, or too large for int64. */
} NumberKind;

typedef struct NumberScan {
    u8 kind;      /* NumberKind */
    bool whole;   /* Nothing but blanks follows. */
    bool nul;     /* `whole` because a NUL byte ended the text. */
    bool integer; /* Digits only, though kind may be NUMBER_REAL for their size. */
    size_t bytes; /* Up to the end of the number, leading blanks included. */
    i64 i;        /* NUMBER_INT */
    f64 r;        /* Always the value as a real. */
} NumberScan;

/*
 * Read the number at the start of `text`: blanks, sign, digits, point, exponent.  An exponent
 * without digits ends the number before it.  No hexadecimal.
 */
NumberScan number_scan(Slice text);
/* Only the real value of the longest prefix (0.0 if none). */
f64 number_real(Slice text);
/* The leading integer digits of `text`, cut to int64's ends: CAST(text AS INTEGER). */
i64 number_int_prefix(Slice text);

/* A literal in SQL: digits with optional separators "_", 0x hexadecimal, decimal point, exponent.
   False: not a number.  Hexadecimal of more than 16 digits is false too. */
bool number_literal(Slice text, bool *is_int_out, i64 *i_out, f64 *r_out);

/* digits[0..count) x 10^exponent10, the nearest real as SQLite computes it. */
f64 number_compose(u64 digits, i32 exponent10);

/* The decimal digits of a real: value = 0.DIGITS x 10^point.  Used by printf. */
typedef struct NumberDigits {
    bool negative;
    u8 special; /* 0 finite, 1 infinite, 2 NaN */
    i32 count;  /* Digits in `digit`, without trailing zeros; at least 1. */
    i32 point;  /* Where the decimal point stands, counted from the first digit. */
    char digit[24];
} NumberDigits;

/*
 * Round `r` to `round` significant digits (round > 0) or -round digits after the point
 * (round <= 0), keeping at most `max_digits` significant ones (16 by default, 20 for "!").
 */
void number_digits(f64 r, i32 round, i32 max_digits, NumberDigits *out);
