/*
 * func_format.c -- printf(), also called format().
 *
 * A conversion writes its body into `scratch`, or finds it in its argument, and put_padded() brings
 * it to its width.  Texts are C strings here: they end at their first NUL.
 */
#include "func/func_private.h"
#include "value/number.h"

#define REAL_PRECISION_MAX 100000000
#define INT31              0x7FFFFFFFu

/* A conversion between its percent sign and its letter. */
typedef struct Spec {
    bool left, alternate, bang, zero, thousands;
    char sign; /* '+', ' ' or 0: what stands before a number that is not negative. */
    i64 width;
    i64 precision; /* -1: none given. */
    u8 letter;
} Spec;

typedef struct Format {
    FuncCall *call;
    Buf out, scratch;
    Err err; /* The first; nothing is written after it. */
    const u8 *p, *end;
    u32 argc;
    const Cell *argv;
} Format;

/* ---- output ---- */

static bool
room_for(Format *f, u64 bytes)
{
    if (f->err == OK) f->err = func__check_length(f->call, f->out.bytes + bytes);
    if (f->err == OK) f->err = buf_reserve(&f->out, (size_t)bytes);
    return f->err == OK;
}

static void
put(Format *f, const void *p, size_t bytes)
{
    if (!room_for(f, bytes)) return;
    if (bytes > 0) memcpy(f->out.p + f->out.bytes, p, bytes);
    f->out.bytes += bytes;
}

static void
put_fill(Format *f, u8 c, i64 count)
{
    if (count <= 0 || !room_for(f, (u64)count)) return;
    memset(f->out.p + f->out.bytes, c, (size_t)count);
    f->out.bytes += (size_t)count;
}

static i64
count_continuations(Slice text)
{
    i64 count = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        count += (text.p[i] & 0xC0) == 0x80;
    }
    return count;
}

/* The body with spaces up to the width, which counts characters if `characters`. */
static void
put_padded(Format *f, const Spec *spec, Slice body, bool characters)
{
    i64 pad = spec->width - (i64)body.bytes;
    if (characters && spec->width > 0) pad += count_continuations(body);
    if (!spec->left) put_fill(f, ' ', pad);
    put(f, body.p, body.bytes);
    if (spec->left) put_fill(f, ' ', pad);
}

static void
scratch_put(Format *f, const void *p, size_t bytes)
{
    if (f->err == OK) f->err = func__check_length(f->call, f->scratch.bytes + bytes);
    if (f->err == OK) f->err = buf_append(&f->scratch, p, bytes);
}

/* ---- arguments ---- */

static const Cell *
next_arg(Format *f)
{
    if (f->argc == 0) return NULL;
    f->argc--;
    return f->argv++;
}

static i64
next_int(Format *f)
{
    const Cell *arg = next_arg(f);
    return arg == NULL ? 0 : cell_to_int(arg);
}

/* False for NULL or no argument. */
static bool
next_text(Format *f, Slice *text_out)
{
    const Cell *arg = next_arg(f);
    *text_out = SLICE("", 0);
    if (arg == NULL || arg->type == CELL_NULL || f->err != OK) return false;
    f->err = func__c_text_arg(f->call, arg, text_out);
    return f->err == OK;
}

/* ---- reading a conversion ---- */

static u8
peek(const Format *f)
{
    return f->p < f->end ? *f->p : 0;
}

static u32
read_digits(Format *f)
{
    u32 v = 0;
    while (peek(f) >= '0' && peek(f) <= '9') {
        v = v * 10 + (u32)(*f->p++ - '0');
    }
    return v & INT31;
}

static void
read_width_arg(Format *f, Spec *spec)
{
    i64 width = (i32)next_int(f);
    if (width < 0) {
        spec->left = true;
        width = width >= -(i64)INT31 ? -width : 0;
    }
    spec->width = width;
}

static void
read_precision(Format *f, Spec *spec)
{
    if (peek(f) != '*') {
        spec->precision = read_digits(f);
        return;
    }
    f->p++;
    i64 precision = (i32)next_int(f);
    if (precision < 0) precision = precision >= -(i64)INT31 ? -precision : -1;
    spec->precision = precision;
}

/* One flag, the width or the precision; false when the letter is reached.  After a width only a
   precision or "l" may come. */
static bool
read_flag(Format *f, Spec *spec)
{
    u8 c = peek(f);
    if (c >= '1' && c <= '9') {
        spec->width = read_digits(f);
        return peek(f) == '.' || peek(f) == 'l';
    }
    if (c == 0) return false;
    f->p++;
    switch (c) {
    case '-': spec->left = true; return true;
    case '+': spec->sign = '+'; return true;
    case ' ': spec->sign = ' '; return true;
    case '#': spec->alternate = true; return true;
    case '!': spec->bang = true; return true;
    case '0': spec->zero = true; return true;
    case ',': spec->thousands = true; return true;
    case '*': read_width_arg(f, spec); return peek(f) == '.' || peek(f) == 'l';
    case '.': read_precision(f, spec); return peek(f) == 'l';
    case 'l':
        if (peek(f) == 'l') f->p++;
        return false;
    default: f->p--; return false;
    }
}

/* ---- integers ---- */

typedef struct IntStyle {
    u32 base;
    bool is_signed, upper;
    const char *prefix; /* With "#". */
} IntStyle;

static IntStyle
int_style(u8 letter)
{
    switch (letter) {
    case 'o': return (IntStyle){8, false, false, "0"};
    case 'x': return (IntStyle){16, false, false, "0x"};
    case 'X': return (IntStyle){16, false, true, "0X"};
    case 'p': return (IntStyle){16, false, true, "0x"};
    case 'u': return (IntStyle){10, false, false, ""};
    default: return (IntStyle){10, true, false, ""};
    }
}

/* Digits of v from the right into text[0..24), with "th" and the like for ordinals. */
static Slice
int_digits(u64 v, const Spec *spec, IntStyle style, char text[24])
{
    const char *digits = style.upper ? "0123456789ABCDEF" : "0123456789abcdef";
    char *p = text + 24;
    if (spec->letter == 'r') {
        static const char suffixes[] = "thstndrd";
        u64 last = v % 10;
        if (last >= 4 || v / 10 % 10 == 1) last = 0;
        *--p = suffixes[last * 2 + 1];
        *--p = suffixes[last * 2];
    }
    do {
        *--p = digits[v % style.base];
        v /= style.base;
    } while (v != 0);
    return SLICE(p, (size_t)(text + 24 - p));
}

static void
put_int(Format *f, const Spec *spec)
{
    IntStyle style = int_style(spec->letter);
    i64 value = next_int(f), precision = spec->precision;
    char sign = style.is_signed ? value < 0 ? '-' : spec->sign : 0, text[24];
    u64 magnitude = style.is_signed && value < 0 ? 0 - (u64)value : (u64)value;
    if (spec->zero && precision < spec->width - (sign != 0)) precision = spec->width - (sign != 0);
    Slice digits = int_digits(magnitude, spec, style, text);

    i64 count = MAX_OF((i64)digits.bytes, precision), zeros = count - (i64)digits.bytes;
    bool thousands = spec->thousands && style.base == 10 && spec->letter != 'r';
    u64 needed = (u64)count + (thousands ? (u64)count / 3 : 0) + 3;
    if (f->err == OK) f->err = func__check_length(f->call, needed);
    if (f->err == OK) f->err = buf_reserve(&f->scratch, (size_t)needed);
    if (f->err != OK) return;
    if (spec->alternate && magnitude != 0) scratch_put(f, style.prefix, strlen(style.prefix));
    u8 *p = f->scratch.p + f->scratch.bytes;
    if (sign != 0) *p++ = (u8)sign;
    for (i64 left = count; left > 0; left--) {
        *p++ = left > count - zeros ? '0' : digits.p[(i64)digits.bytes - left];
        if (thousands && left > 1 && left % 3 == 1) *p++ = ',';
    }
    put_padded(f, spec, SLICE(f->scratch.p, (size_t)(p - f->scratch.p)), false);
}

/* ---- reals ---- */

typedef struct RealStyle {
    i64 precision;
    bool exponent, point, strip, bang, thousands;
    char letter; /* 'e' or 'E' */
} RealStyle;

static char *
put_exponent(char *p, i32 exponent, char letter)
{
    *p++ = letter;
    *p++ = exponent < 0 ? '-' : '+';
    if (exponent < 0) exponent = -exponent;
    if (exponent >= 100) *p++ = (char)('0' + exponent / 100);
    *p++ = (char)('0' + exponent / 10 % 10);
    *p++ = (char)('0' + exponent % 10);
    return p;
}

/* Zeros at the end go, and the point with them unless "!" keeps one digit. */
static char *
strip_zeros(char *p, bool bang)
{
    while (p[-1] == '0') {
        p--;
    }
    if (p[-1] == '.') {
        if (bang) {
            *p++ = '0';
        } else {
            p--;
        }
    }
    return p;
}

/* The digits without sign, written at p; returns the end. */
static char *
put_real_body(char *p, const NumberDigits *d, RealStyle style)
{
    i32 place = style.exponent ? 0 : d->point - 1; /* Power of ten of the next digit. */
    i32 at = 0;
    i64 left = style.precision;
    if (place < 0) *p++ = '0';
    for (; place >= 0; place--) {
        *p++ = at < d->count ? d->digit[at++] : '0';
        if (style.thousands && place > 1 && place % 3 == 0) *p++ = ',';
    }
    if (style.point) *p++ = '.';
    for (; place < -1 && left > 0; place++, left--) {
        *p++ = '0';
    }
    for (; at < d->count && left > 0; left--) {
        *p++ = d->digit[at++];
    }
    if (left > 0 && !style.strip) {
        memset(p, '0', (size_t)left);
        p += left;
    }
    if (style.strip && style.point) p = strip_zeros(p, style.bang);
    return style.exponent ? put_exponent(p, d->point - 1, style.letter) : p;
}

size_t
func__put_fixed(char *text, f64 r, u32 decimals)
{
    NumberDigits d;
    char *p = text;
    number_digits(r, -(i32)decimals, 20, &d);
    if (d.negative) *p++ = '-';
    p = put_real_body(
        p, &d, (RealStyle){.precision = decimals, .point = true, .strip = true, .bang = true});
    return (size_t)(p - text);
}

/* How the digits are laid out: %g chooses between %f and %e. */
static RealStyle
real_style(const Spec *spec, i64 precision, const NumberDigits *d)
{
    u8 letter = spec->letter | 0x20;
    RealStyle style = {.precision = precision,
                       .exponent = letter == 'e',
                       .strip = spec->bang,
                       .bang = spec->bang,
                       .thousands = spec->thousands,
                       .letter = spec->letter == 'E' || spec->letter == 'G' ? 'E' : 'e'};
    if (letter == 'g') {
        i32 exponent = d->point - 1;
        style.precision--;
        style.strip = !spec->alternate;
        style.exponent = exponent < -4 || exponent > style.precision;
        if (!style.exponent) style.precision -= exponent;
    }
    style.point = style.precision > 0 || spec->alternate || spec->bang;
    return style;
}

size_t
func__put_real(char *text, f64 r, u8 letter, u32 precision)
{
    Spec spec = {.letter = letter};
    NumberDigits d;
    number_digits(r, letter == 'f' ? -(i32)precision : (i32)precision, 16, &d);
    char *p = text;
    if (d.negative) *p++ = '-';
    p = put_real_body(p, &d, real_style(&spec, precision, &d));
    return (size_t)(p - text);
}

static void
put_infinite(Format *f, const Spec *spec, bool negative)
{
    const char *text = negative            ? "-Inf"
                       : spec->sign == '+' ? "+Inf"
                       : spec->sign == ' ' ? " Inf"
                                           : "Inf";
    put_padded(f, spec, SLICE(text, strlen(text)), false);
}

static void
put_real(Format *f, const Spec *spec)
{
    const Cell *arg = next_arg(f);
    u8 letter = spec->letter | 0x20;
    i64 precision = spec->precision < 0 ? 6 : MIN_OF(spec->precision, REAL_PRECISION_MAX);
    if (letter == 'g' && precision == 0) precision = 1;
    i64 round = letter == 'f' ? -precision : letter == 'g' ? precision : precision + 1;
    NumberDigits d;
    number_digits(arg == NULL ? 0.0 : cell_to_real(arg), (i32)round, spec->bang ? 20 : 16, &d);
    if (d.special != 0) {
        if (!spec->zero) {
            put_infinite(f, spec, d.negative);
            return;
        }
        d.digit[0] = '9'; /* As a number out of range: it reads back as infinite. */
        d.count = 1;
        d.point = 1000;
    }
    char sign = d.negative ? '-' : spec->sign;
    /* "#" without "+" suppresses the minus of what prints as zero. */
    if (d.negative && spec->alternate && spec->sign == 0 && letter == 'f' && d.point <= round) {
        sign = 0;
    }
    RealStyle style = real_style(spec, precision, &d);
    i64 whole = style.exponent ? 0 : MAX_OF(d.point - 1, 0);
    u64 needed = (u64)(whole + style.precision + spec->width + 10 + (whole + 2) / 3);
    if (!room_for(f, needed)) return;

    char *start = (char *)f->out.p + f->out.bytes, *p = start;
    if (sign != 0) *p++ = sign;
    p = put_real_body(p, &d, style);
    i64 bytes = p - start, pad = spec->width - bytes;
    if (pad > 0) {
        /* Zeros go behind the sign, spaces before it or behind everything. */
        i64 keep = spec->zero && !spec->left ? sign != 0 : 0;
        if (spec->left) keep = bytes;
        memmove(start + keep + pad, start + keep, (size_t)(bytes - keep));
        memset(start + keep, spec->zero && !spec->left ? '0' : ' ', (size_t)pad);
        bytes = spec->width;
    }
    f->out.bytes += (size_t)bytes;
}

/* ---- texts ---- */

/* The first `precision` bytes, or characters with "!". */
static Slice
cut(Slice text, const Spec *spec)
{
    if (spec->precision < 0) return text;
    if (!spec->bang) return SLICE(text.p, MIN_OF(text.bytes, (size_t)spec->precision));
    const u8 *p = text.p, *end = p + text.bytes;
    for (i64 left = spec->precision; left > 0 && p < end; left--) {
        p = func__utf8_skip(p, end);
    }
    return SLICE(text.p, (size_t)(p - text.p));
}

static void
put_text(Format *f, const Spec *spec)
{
    Slice text;
    (void)next_text(f, &text);
    put_padded(f, spec, cut(text, spec), spec->bang);
}

/* The first character of the argument, `precision` times; a NUL byte if there is none. */
static void
put_character(Format *f, const Spec *given)
{
    Slice text;
    Spec spec = *given;
    u8 c[4] = {0};
    size_t bytes = 1;
    if (next_text(f, &text) && text.bytes > 0) {
        c[0] = text.p[0];
        while (c[0] >= 0xC0 && bytes < 4 && bytes < text.bytes && (text.p[bytes] & 0xC0) == 0x80) {
            c[bytes] = text.p[bytes];
            bytes++;
        }
    }
    if (spec.precision > 1) {
        spec.width -= spec.precision - 1;
        if (spec.width > 1 && !spec.left) {
            put_fill(f, ' ', spec.width - 1);
            spec.width = 0;
        }
        i64 copies = spec.precision - 1;
        if (bytes == 1) {
            put_fill(f, c[0], copies);
        } else if (room_for(f, (u64)copies * bytes)) {
            for (; copies > 0; copies--) {
                put(f, c, bytes);
            }
        }
    }
    put_padded(f, &spec, SLICE(c, bytes), true);
}

/* ---- quoted texts ---- */

static bool
has_control(Slice text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.p[i] <= 0x1F) return true;
    }
    return false;
}

/* The text with quotes doubled; with `escapes` control characters and backslashes as unistr()
   reads them. */
static void
scratch_quoted(Format *f, Slice text, u8 quote, bool escapes)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < text.bytes; i++) {
        u8 c = text.p[i];
        u8 code[6] = {'\\', 'u', '0', '0', c >= 0x10 ? '1' : '0', (u8)digits[c & 15]};
        if (escapes && c <= 0x1F) {
            scratch_put(f, code, 6);
            continue;
        }
        if (c == quote || (escapes && c == '\\')) scratch_put(f, &c, 1);
        scratch_put(f, &c, 1);
    }
}

/* %q %Q %w */
static void
put_quoted(Format *f, const Spec *spec)
{
    Slice text;
    bool some = next_text(f, &text), enclosed = some && spec->letter == 'Q';
    if (!some) text = spec->letter == 'Q' ? SLICE_LITERAL("NULL") : SLICE_LITERAL("(NULL)");
    text = cut(text, spec);
    bool escapes = spec->alternate && spec->letter != 'w' &&
                   (spec->letter == 'q' || has_control(text));
    /* What stands for NULL has no control characters, so "unistr" goes with quotes only. */
    bool unistr = escapes && spec->letter == 'Q';
    if (unistr) scratch_put(f, "unistr(", 7);
    if (enclosed) scratch_put(f, "'", 1);
    scratch_quoted(f, text, spec->letter == 'w' ? '"' : '\'', escapes);
    if (enclosed) scratch_put(f, "'", 1);
    if (unistr) scratch_put(f, ")", 1);
    put_padded(f, spec, buf_slice(&f->scratch), spec->bang);
}

/* The first `precision` bytes or characters, as %j counts them: continuation bytes are free. */
static Slice
cut_json(Slice text, const Spec *spec)
{
    if (spec->precision < 0) return text;
    size_t left = (size_t)spec->precision, i = 0;
    for (; i < text.bytes; i++) {
        bool continuation = spec->bang && (text.p[i] & 0xC0) == 0x80;
        if (left == 0 && !continuation) break;
        if (!continuation) left--;
    }
    return SLICE(text.p, i);
}

static void
scratch_json(Format *f, Slice text)
{
    static const char digits[] = "0123456789abcdef", letters[] = "btn?fr";
    for (size_t i = 0; i < text.bytes; i++) {
        u8 c = text.p[i];
        u8 code[6] = {'\\', 'u', '0', '0', (u8)digits[c >> 4], (u8)digits[c & 15]};
        if (c > 0x1F && c != '"' && c != '\\') {
            scratch_put(f, &c, 1);
        } else if (c > 0x1F || (c >= 8 && c <= 13 && c != 11)) {
            code[1] = c > 0x1F ? c : (u8)letters[c - 8];
            scratch_put(f, code, 2);
        } else {
            scratch_put(f, code, 6);
        }
    }
}

/* %j: the inside of a JSON string; %J: the string, or null. */
static void
put_json(Format *f, const Spec *spec)
{
    Slice text;
    bool some = next_text(f, &text), whole = spec->letter == 'J';
    if (!some && whole) scratch_put(f, "null", 4);
    if (some && whole) scratch_put(f, "\"", 1);
    if (some) scratch_json(f, cut_json(text, spec));
    if (some && whole) scratch_put(f, "\"", 1);
    put_padded(f, spec, buf_slice(&f->scratch), spec->bang);
}

/* ---- the loop ---- */

/* Carry out one conversion; false for a letter that is none: the output ends there. */
static bool
convert(Format *f, const Spec *spec)
{
    buf_clear(&f->scratch);
    switch (spec->letter) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
    case 'p':
    case 'r': put_int(f, spec); return true;
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G': put_real(f, spec); return true;
    case 's':
    case 'z': put_text(f, spec); return true;
    case 'c': put_character(f, spec); return true;
    case 'q':
    case 'Q':
    case 'w': put_quoted(f, spec); return true;
    case 'j':
    case 'J': put_json(f, spec); return true;
    case '%': put_padded(f, spec, SLICE_LITERAL("%"), false); return true;
    case 'n': return true;
    default: return false;
    }
}

static void
run(Format *f)
{
    while (f->err == OK && f->p < f->end) {
        const u8 *percent = memchr(f->p, '%', (size_t)(f->end - f->p));
        if (percent == NULL) percent = f->end;
        put(f, f->p, (size_t)(percent - f->p));
        if (percent == f->end) return;
        f->p = percent + 1;
        if (f->p == f->end) {
            put(f, "%", 1);
            return;
        }
        Spec spec = {.precision = -1};
        while (read_flag(f, &spec)) {
        }
        if (f->p == f->end) return;
        spec.letter = *f->p++;
        if (!convert(f, &spec)) return;
    }
}

static Err
run_format(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    if (argc == 0 || argv[0].type == CELL_NULL) return OK;
    Slice text;
    Err err = func__c_text_arg(call, &argv[0], &text);
    if (err != OK) return err;
    Format f = {
        .call = call, .p = text.p, .end = text.p + text.bytes, .argc = argc - 1, .argv = argv + 1};
    run(&f);
    err = f.err;
    if (err == OK) err = func__result_text(call, f.out.p, f.out.bytes, result_out);
    buf_free(&f.out);
    buf_free(&f.scratch);
    return err;
}

static const FuncDef DEFS[] = {
    {.name = "format",
     .argc_min = 0,
     .argc_max = -1,
     .flags = FUNC_INNOCUOUS,
     .scalar = run_format},
    {.name = "printf",
     .argc_min = 0,
     .argc_max = -1,
     .flags = FUNC_INNOCUOUS,
     .scalar = run_format},
};

FUNC_FAMILY(func__format_family, DEFS);
