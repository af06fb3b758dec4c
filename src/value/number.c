/*
 * number.c -- numbers to text and text to numbers, without the C library.
 *
 * Invariant: both directions use the same 96-bit powers of ten (number_power.h), so a real's 17
 * digits read back as the same real.
 */
#include "value/number.h"
#include "value/number_power.h"

/* Digits that go into the 64-bit significand stop here: one more could overflow it. */
#define SIGNIFICAND_FULL ((U64_MAX - 9) / 10)
#define EXPONENT_CAP     10000

#define REAL_HIDDEN_BIT   ((u64)1 << 52)
#define REAL_FRACTION     (REAL_HIDDEN_BIT - 1)
#define REAL_EXPONENT_MAX 0x7FF

__extension__ typedef unsigned __int128 u128;

static inline bool
is_blank(u8 c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool
is_digit(u8 c)
{
    return (u32)c - '0' < 10;
}

/* ---- powers ---- */

/* floor(log2(10^p)) and floor(log10(2^e)); right shifts of negatives round down. */
static inline i32
log2_of_ten(i32 p)
{
    return (p * 108853) >> 15;
}
static inline i32
log10_of_two(i32 e)
{
    return (e * 78913) >> 18;
}

static Power
power_of_ten(i32 p)
{
    DCHECK(p >= POWER_MIN && p <= POWER_MAX);
    if (p >= 0 && p < 27) return (Power){POWER_SMALL[p], 0};
    if (p == -1) return POWER_TENTH;

    i32 big = p / 27, small = p % 27;
    if (small < 0) {
        big--;
        small += 27;
    }
    Power power = POWER_BIG[big + 13];
    if (small == 0) return power;

    /* The upper 96 bits of a 160-bit product, then shifted up so that the top bit is set. */
    u64 factor = POWER_SMALL[small];
    u128 product = (u128)power.hi * factor + (((u128)power.lo * factor) >> 32);
    power.hi = (u64)(product >> 64);
    power.lo = (u32)(product >> 32);
    if ((power.hi >> 63) == 0) {
        power.hi = power.hi << 1 | power.lo >> 31;
        power.lo = power.lo << 1 | 1;
    }
    return power;
}

/*
 * digits x 10^exponent10 as a real.  The product with the power is formed with four extra bits of
 * significand below which one sticky bit says "and something more"; then it is rounded half to
 * even.
 */
f64
number_compose(u64 digits, i32 exponent10)
{
    if (digits == 0 || exponent10 < POWER_MIN) return 0.0;
    if (exponent10 > POWER_MAX) return (f64)__builtin_inff();

    i32 bits = (i32)bits_of(digits);
    i32 log2_power = log2_of_ten(exponent10);
    i32 scale = 53 - bits - log2_power; /* The result is significand x 2^-scale. */
    if (scale > 1074) {
        if (scale >= 1130) return 0.0;
        scale = 1074; /* Subnormal: fewer bits. */
    }
    i32 drop = -(scale - (64 - bits) + log2_power + 3);

    /* An inexact power is taken from above, and what was too much is subtracted only where it
       can matter: when nothing but zeros would be dropped. */
    Power power = power_of_ten(exponent10);
    if (power.lo != 0) {
        power.hi++;
        power.lo = ~power.lo;
    }
    u64 shifted = digits << (64 - bits);
    u128 product = (u128)shifted * power.hi;
    u64 high = (u64)(product >> 64);
    u64 sticky = 1;
    if ((high & (((u64)1 << drop) - 1)) == 0) {
        u32 middle = (u32)(product >> 32);
        u32 excess = (u32)(((u128)shifted * power.lo) >> 64);
        sticky = (u32)(middle - excess) > 1;
        high -= middle < excess;
    }
    u64 rounded = high >> drop | sticky;
    if (rounded >= ((u64)1 << 55) - 2) {
        rounded = rounded >> 1 | (rounded & 1);
        scale--;
    }
    u64 significand = (rounded + 1 + (rounded >> 2 & 1)) >> 2;
    if (scale <= -972) return (f64)__builtin_inff();
    if (significand & REAL_HIDDEN_BIT) {
        significand = (significand & ~REAL_HIDDEN_BIT) | (u64)(1075 - scale) << 52;
    }
    f64 r;
    memcpy(&r, &significand, sizeof(r));
    return r;
}

/* ---- text to number ---- */

/* Where a scan stands: digits read so far as significand x 10^exponent. */
typedef struct Scan {
    const u8 *p, *end;
    u64 significand;
    i32 exponent;
    bool digits, point_or_exponent;
    bool separators; /* Skip "_", as in literals. */
} Scan;

/* The byte at the cursor; the end and a NUL are the same to a number. */
static inline u8
scan_peek(Scan *scan)
{
    while (UNLIKELY(scan->separators) && scan->p < scan->end && *scan->p == '_') {
        scan->p++;
    }
    return scan->p < scan->end ? *scan->p : 0;
}

static void
scan_integer(Scan *scan)
{
    u8 c;
    while (is_digit(c = scan_peek(scan))) {
        scan->digits = true;
        scan->p++;
        scan->significand = scan->significand * 10 + (u64)(c - '0');
        if (scan->significand >= SIGNIFICAND_FULL) break;
    }
    while (is_digit(scan_peek(scan))) {
        scan->p++;
        scan->exponent += scan->exponent < EXPONENT_CAP * 2;
    }
}

static void
scan_fraction(Scan *scan)
{
    if (scan_peek(scan) != '.') return;
    const u8 *point = scan->p++;
    bool any = scan->digits;
    u8 c;
    while (is_digit(c = scan_peek(scan))) {
        any = true;
        scan->p++;
        if (scan->significand < SIGNIFICAND_FULL) {
            scan->significand = scan->significand * 10 + (u64)(c - '0');
            scan->exponent -= scan->exponent > -EXPONENT_CAP * 2;
        }
    }
    if (!any) {
        scan->p = point; /* A point alone is no number. */
        return;
    }
    scan->digits = true;
    scan->point_or_exponent = true;
}

static void
scan_exponent(Scan *scan)
{
    if ((scan_peek(scan) | 0x20) != 'e') return;
    const u8 *start = scan->p++;
    bool negative = scan_peek(scan) == '-';
    if (negative || scan_peek(scan) == '+') scan->p++;
    if (!is_digit(scan_peek(scan))) {
        scan->p = start;
        return;
    }
    i32 exponent = 0;
    while (is_digit(scan_peek(scan))) {
        if (exponent < EXPONENT_CAP) exponent = exponent * 10 + (*scan->p - '0');
        scan->p++;
    }
    scan->exponent += negative ? -exponent : exponent;
    scan->point_or_exponent = true;
}

NumberScan
number_scan(Slice text)
{
    NumberScan out = {.kind = NUMBER_NONE};
    Scan scan = {.p = text.p, .end = text.p + text.bytes};
    while (is_blank(scan_peek(&scan))) {
        scan.p++;
    }
    bool negative = scan_peek(&scan) == '-';
    if (negative || scan_peek(&scan) == '+') scan.p++;

    scan_integer(&scan);
    bool cut = scan.exponent > 0; /* Integer digits were dropped: 20 or more of them. */
    scan_fraction(&scan);
    if (!scan.digits) return out;
    scan_exponent(&scan);
    out.bytes = (size_t)(scan.p - text.p);

    f64 magnitude = number_compose(scan.significand, scan.exponent);
    out.r = negative ? -magnitude : magnitude;
    out.integer = !scan.point_or_exponent;
    u64 limit = (u64)I64_MAX + negative;
    if (out.integer && !cut && scan.significand <= limit) {
        out.kind = NUMBER_INT;
        out.i = (i64)(negative ? 0 - scan.significand : scan.significand);
    } else {
        out.kind = NUMBER_REAL;
    }
    while (is_blank(scan_peek(&scan))) {
        scan.p++;
    }
    out.whole = scan_peek(&scan) == 0;
    out.nul = out.whole && scan.p < scan.end;
    return out;
}

f64
number_real(Slice text)
{
    return number_scan(text).r;
}

i64
number_int_prefix(Slice text)
{
    const u8 *p = text.p, *end = text.p + text.bytes;
    while (p < end && is_blank(*p)) {
        p++;
    }
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    u64 limit = (u64)I64_MAX + negative, value = 0;
    for (; p < end && is_digit(*p); p++) {
        u64 digit = (u64)(*p - '0');
        if (value > (limit - digit) / 10) {
            value = limit;
            break;
        }
        value = value * 10 + digit;
    }
    return (i64)(negative ? 0 - value : value);
}

static i32
hex_digit(u8 c)
{
    if (is_digit(c)) return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
literal_hex(Slice text, i64 *i_out)
{
    u64 value = 0;
    u32 digits = 0;
    for (size_t at = 2; at < text.bytes; at++) {
        if (text.p[at] == '_') continue;
        i32 digit = hex_digit(text.p[at]);
        if (digit < 0) return false;
        if (value != 0 || digit != 0) digits++;
        value = value << 4 | (u64)digit;
    }
    if (digits > 16 || text.bytes == 2) return false;
    *i_out = (i64)value;
    return true;
}

bool
number_literal(Slice text, bool *is_int_out, i64 *i_out, f64 *r_out)
{
    if (text.bytes > 2 && text.p[0] == '0' && (text.p[1] | 0x20) == 'x') {
        *is_int_out = true;
        return literal_hex(text, i_out);
    }
    Scan scan = {.p = text.p, .end = text.p + text.bytes, .separators = true};
    scan_integer(&scan);
    bool cut = scan.exponent > 0;
    scan_fraction(&scan);
    scan_exponent(&scan);
    if (!scan.digits || scan.p != scan.end) return false;
    *is_int_out = !scan.point_or_exponent && !cut && scan.significand <= (u64)I64_MAX;
    *i_out = *is_int_out ? (i64)scan.significand : 0;
    *r_out = number_compose(scan.significand, scan.exponent);
    return true;
}

/* ---- number to text ---- */

/* Write v's decimal digits without leading zeros (at least one); returns how many. */
static size_t
put_u64(char *p, u64 v)
{
    char reversed[20];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    for (size_t i = 0; i < count; i++) {
        p[i] = reversed[count - 1 - i];
    }
    return count;
}

size_t
number_put_int(char *p, i64 i)
{
    if (i >= 0) return put_u64(p, (u64)i);
    *p = '-';
    return 1 + put_u64(p + 1, 0 - (u64)i);
}

/*
 * The first digits of fraction x 2^exponent2 (top bit of fraction set): an integer of about
 * `digits` + 1 digits, times 10^*exponent_out.  18 digits are rounded half up, fewer are cut.
 */
static u64
leading_digits(u64 fraction, i32 exponent2, i32 digits, i32 *exponent_out)
{
    i32 p = digits - 1 - log10_of_two(exponent2 + 63);
    u64 high = (u64)(((u128)fraction * power_of_ten(p).hi) >> 64);
    i32 shift = -(exponent2 + log2_of_ten(p) + 1);
    *exponent_out = -p;
    if (digits < 18) return high >> shift;
    high >>= shift - 1;
    return (high >> 1) + (high & 1);
}

static u64
digits_value(const char *digit, i32 count)
{
    u64 v = 0;
    for (i32 i = 0; i < count; i++) {
        v = v * 10 + (u64)(digit[i] - '0');
    }
    return v;
}

/*
 * 17 digits were asked for: if the tail is all nines or zeros, a shorter number may read back as
 * the same real.  Returns the number of digits to keep.
 */
static i32
shorter_if_equal(f64 r, const NumberDigits *d, i32 exponent10)
{
    const char *digit = d->digit;
    i32 keep;
    u64 value;
    if (digit[15] == '9' && digit[14] == '9') {
        for (keep = 14; keep > 0 && digit[keep - 1] == '9'; keep--) {
        }
        value = digits_value(digit, keep) + 1;
    } else if (d->point >= d->count || (digit[15] == '0' && digit[14] == '0' && digit[13] == '0')) {
        for (keep = 13; digit[keep - 1] == '0'; keep--) {
        }
        value = digits_value(digit, keep);
    } else {
        return 17;
    }
    return number_compose(value, exponent10 + d->count - keep) == r ? keep + 1 : 17;
}

/* Cut to `keep` digits, rounding half up; the carry may add a digit in front. */
static void
round_digits(NumberDigits *d, i32 keep)
{
    bool up = d->digit[keep] >= '5';
    d->count = keep;
    if (!up) return;
    i32 i = keep - 1;
    while (i >= 0 && d->digit[i] == '9') {
        d->digit[i--] = '0';
    }
    if (i >= 0) {
        d->digit[i]++;
        return;
    }
    memmove(d->digit + 1, d->digit, (size_t)keep);
    d->digit[0] = '1';
    d->count++;
    d->point++;
}

void
number_digits(f64 r, i32 round, i32 max_digits, NumberDigits *out)
{
    ASSERT(max_digits > 0);
    *out = (NumberDigits){.negative = r < 0.0, .count = 1, .point = 1, .digit = "0"};
    if (r == 0.0) return;
    if (r < 0.0) r = -r;

    u64 fraction;
    memcpy(&fraction, &r, sizeof(fraction));
    i32 exponent2 = (i32)(fraction >> 52) & REAL_EXPONENT_MAX;
    bool nan = exponent2 == REAL_EXPONENT_MAX && (fraction & REAL_FRACTION) != 0;
    if (exponent2 == REAL_EXPONENT_MAX) {
        out->special = nan ? 2 : 1;
        out->point = 0;
        return;
    }
    fraction &= REAL_FRACTION;
    if (exponent2 == 0) {
        i32 shift = __builtin_clzll(fraction);
        fraction <<= shift;
        exponent2 = -1074 - shift;
    } else {
        fraction = fraction << 11 | (u64)1 << 63;
        exponent2 -= 1086;
    }
    i32 exponent10;
    u64 value = leading_digits(fraction, exponent2, round <= 0 || round >= 18 ? 18 : round + 1,
                               &exponent10);
    out->count = (i32)put_u64(out->digit, value);
    out->point = out->count + exponent10;
    if (round <= 0) {
        round = out->point - round;
        if (round == 0 && out->digit[0] >= '5') {
            /* It rounds up to one unit of the last place asked for. */
            memmove(out->digit + 1, out->digit, (size_t)out->count);
            out->digit[0] = '0';
            out->count++;
            out->point++;
            round = 1;
        }
    }
    if (round > 0 && (round < out->count || out->count > max_digits)) {
        if (round > max_digits) round = max_digits;
        if (round == 17) round = shorter_if_equal(r, out, exponent10);
        round_digits(out, round);
    }
    while (out->count > 1 && out->digit[out->count - 1] == '0') {
        out->count--;
    }
}

/* digits with the point among or around them, at least one digit on either side. */
static char *
put_plain(char *p, const NumberDigits *d)
{
    i32 at = 0;
    if (d->point <= 0) *p++ = '0';
    for (; at < d->point; at++) {
        *p++ = at < d->count ? d->digit[at] : '0';
    }
    *p++ = '.';
    for (i32 zero = d->point; zero < 0; zero++) {
        *p++ = '0';
    }
    if (at >= d->count) *p++ = '0';
    for (; at < d->count; at++) {
        *p++ = d->digit[at];
    }
    return p;
}

size_t
number_put_real(char *text, f64 r)
{
    char *p = text;
    NumberDigits d;
    number_digits(r, 17, 20, &d);
    if (d.special == 2) {
        memcpy(p, "NaN", 3);
        return 3;
    }
    if (d.negative) *p++ = '-';
    if (d.special == 1) {
        memcpy(p, "Inf", 3);
        return (size_t)(p - text) + 3;
    }
    i32 exponent = d.point - 1;
    if (exponent >= -4 && exponent < 17) return (size_t)(put_plain(p, &d) - text);

    d.point = 1;
    p = put_plain(p, &d);
    *p++ = 'e';
    *p++ = exponent < 0 ? '-' : '+';
    if (exponent < 0) exponent = -exponent;
    if (exponent < 10) *p++ = '0';
    return (size_t)(p - text) + put_u64(p, (u64)exponent);
}
