/*
 * func_text.c -- functions on text and blobs.
 *
 * SQLite's functions differ in whether they see what stands behind a NUL byte, and so do these:
 * func__c_text_arg stops there, func__text_arg does not.
 */
#include "func/func_private.h"

static const char HEX_DIGITS[] = "0123456789ABCDEF";

/* ---- measuring ---- */

static Err
run_length(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (argv->type == CELL_NULL) return OK;
    if (argv->type == CELL_BLOB) {
        *result_out = cell_int(argv->bytes);
        return OK;
    }
    Slice text;
    Err err = func__c_text_arg(call, argv, &text);
    if (err != OK) return err;
    i64 count = 0;
    const u8 *end = text.p + text.bytes;
    for (const u8 *p = text.p; p < end; count++) {
        p = func__utf8_skip_any(p, end);
    }
    *result_out = cell_int(count);
    return OK;
}

static Err
run_octet_length(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (argv->type == CELL_NULL) return OK;
    if (argv->type == CELL_TEXT || argv->type == CELL_BLOB) {
        *result_out = cell_int(argv->bytes);
        return OK;
    }
    Slice text;
    Err err = func__text_arg(call, argv, &text);
    if (err == OK) *result_out = cell_int((i64)text.bytes);
    return err;
}

static Err
run_instr(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (argv[0].type == CELL_NULL || argv[1].type == CELL_NULL) return OK;
    Slice hay, needle;
    Err err = func__text_arg(call, &argv[0], &hay);
    if (err == OK) err = func__text_arg(call, &argv[1], &needle);
    if (err != OK) return err;
    bool by_characters = argv[0].type != CELL_BLOB || argv[1].type != CELL_BLOB;
    i64 at = 1;
    const u8 *p = hay.p, *end = hay.p + hay.bytes;
    while (needle.bytes > 0) {
        if ((size_t)(end - p) < needle.bytes) {
            at = 0;
            break;
        }
        if (*p == needle.p[0] && memcmp(p, needle.p, needle.bytes) == 0) break;
        at++;
        do {
            p++;
        } while (by_characters && p < end && (*p & 0xC0) == 0x80);
    }
    *result_out = cell_int(at);
    return OK;
}

static Err
run_unicode(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (argv->type == CELL_NULL) return OK;
    Slice text;
    Err err = func__c_text_arg(call, argv, &text);
    if (err != OK || text.bytes == 0) return err;
    const u8 *p = text.p;
    *result_out = cell_int((i32)func__utf8_read(&p, text.p + text.bytes));
    return OK;
}

/* ---- parts ---- */

/* First element (from 0) and number of elements that substr(x, start, count) means. */
static void
substr_range(i64 start, i64 count, i64 length, i64 *first_out, i64 *count_out)
{
    if (start < 0) {
        start += length;
        if (start < 0) {
            count = count < 0 ? 0 : count + start;
            start = 0;
        }
    } else if (start > 0) {
        start--;
    } else if (count > 0) {
        count--;
    }
    if (count < 0) {
        count = count < -start ? start : -count;
        start -= count;
    }
    *first_out = start;
    *count_out = count;
}

static i64
count_characters(const u8 *p, const u8 *end)
{
    i64 count = 0;
    for (; p < end; count++) {
        p = func__utf8_skip(p, end);
    }
    return count;
}

static Err
run_substr(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    for (u32 i = 0; i < argc; i++) {
        if (argv[i].type == CELL_NULL) return OK;
    }
    i64 start = cell_to_int(&argv[1]), count = argc == 3 ? cell_to_int(&argv[2]) : I64_MAX, first;
    Slice bytes;
    if (argv[0].type == CELL_BLOB) {
        Err err = cell_bytes(&argv[0], call->arena, &bytes);
        if (err != OK) return err;
        /* An empty blob has no bytes to point to: NULL, as SQLite gives. */
        if (bytes.bytes == 0) return OK;
        i64 length = (i64)bytes.bytes;
        substr_range(start, count, length, &first, &count);
        if (first >= length) first = count = 0;
        if (count > length - first) count = length - first;
        *result_out = cell_blob(bytes.p + first, (size_t)count);
        return OK;
    }
    Err err = func__c_text_arg(call, &argv[0], &bytes);
    if (err != OK) return err;
    const u8 *p = bytes.p, *end = p + bytes.bytes;
    substr_range(start, count, start < 0 ? count_characters(p, end) : 0, &first, &count);
    for (; first > 0 && p < end; first--) {
        p = func__utf8_skip_any(p, end);
    }
    const u8 *from = p;
    for (; count > 0 && p < end; count--) {
        p = func__utf8_skip_any(p, end);
    }
    *result_out = cell_text(from, (size_t)(p - from));
    return OK;
}

enum { TRIM_LEFT = 1, TRIM_RIGHT = 2 };

/* Bytes of the character of `set` that `text` begins (or ends) with; 0 if there is none. */
static size_t
trim_match(Slice set, Slice text, bool right)
{
    const u8 *end = set.p + set.bytes;
    for (const u8 *p = set.p; p < end;) {
        const u8 *next = func__utf8_skip(p, end);
        size_t bytes = (size_t)(next - p);
        const u8 *at = right ? text.p + text.bytes - bytes : text.p;
        if (bytes <= text.bytes && memcmp(at, p, bytes) == 0) return bytes;
        p = next;
    }
    return 0;
}

static Err
trim(FuncCall *call, u32 argc, const Cell *argv, u32 sides, Cell *result_out)
{
    if (argv[0].type == CELL_NULL || (argc == 2 && argv[1].type == CELL_NULL)) return OK;
    Slice text, set = SLICE_LITERAL(" ");
    Err err = func__text_arg(call, &argv[0], &text);
    if (err == OK && argc == 2) err = func__c_text_arg(call, &argv[1], &set);
    if (err != OK) return err;
    size_t bytes;
    while ((sides & TRIM_LEFT) && (bytes = trim_match(set, text, false)) != 0) {
        text = SLICE(text.p + bytes, text.bytes - bytes);
    }
    while ((sides & TRIM_RIGHT) && (bytes = trim_match(set, text, true)) != 0) {
        text.bytes -= bytes;
    }
    *result_out = cell_text(text.p, text.bytes);
    return OK;
}

static Err
run_trim(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    return trim(call, argc, argv, TRIM_LEFT | TRIM_RIGHT, result_out);
}
static Err
run_ltrim(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    return trim(call, argc, argv, TRIM_LEFT, result_out);
}
static Err
run_rtrim(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    return trim(call, argc, argv, TRIM_RIGHT, result_out);
}

/* ---- changing ---- */

static Err
change_case(FuncCall *call, const Cell *cell, u8 first, u8 last, Cell *result_out)
{
    if (cell->type == CELL_NULL) return OK;
    Slice text;
    u8 *room;
    Err err = func__text_arg(call, cell, &text);
    if (err == OK) err = func__result_room(call, text.bytes, &room);
    if (err != OK) return err;
    for (size_t i = 0; i < text.bytes; i++) {
        u8 c = text.p[i];
        room[i] = c >= first && c <= last ? c ^ 0x20 : c;
    }
    func__result_set(room, text.bytes, result_out);
    return OK;
}

static Err
run_upper(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    return change_case(call, argv, 'a', 'z', result_out);
}
static Err
run_lower(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    return change_case(call, argv, 'A', 'Z', result_out);
}

/* The next occurrence of `what` in [p, end), or NULL. */
static const u8 *
find(const u8 *p, const u8 *end, Slice what)
{
    while ((size_t)(end - p) >= what.bytes) {
        p = memchr(p, what.p[0], (size_t)(end - p) - what.bytes + 1);
        if (p == NULL) return NULL;
        if (memcmp(p, what.p, what.bytes) == 0) return p;
        p++;
    }
    return NULL;
}

#define FOUND_PER_LOOK 4096u

/* Now and then: others may run, and who was interrupted stops. */
static bool
is_stopped(const FuncCall *call, u64 found)
{
    const FuncEnv *env = call->env;
    return found % FOUND_PER_LOOK == 0 && env != NULL && env->stop != NULL && env->stop(env->arg);
}

static Err
run_replace(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (argv[0].type == CELL_NULL || argv[1].type == CELL_NULL) return OK;
    Slice text, from, to;
    Err err = func__text_arg(call, &argv[0], &text);
    if (err == OK) err = func__text_arg(call, &argv[1], &from);
    if (err != OK) return err;
    if (from.bytes == 0 || from.p[0] == 0) {
        *result_out = cell_text(text.p, text.bytes);
        return OK;
    }
    if (argv[2].type == CELL_NULL) return OK;
    err = func__text_arg(call, &argv[2], &to);
    if (err != OK) return err;

    const u8 *end = text.p + text.bytes;
    u64 found = 0;
    for (const u8 *p = text.p; (p = find(p, end, from)) != NULL; p += from.bytes) {
        if (is_stopped(call, ++found)) return ERR_INTERRUPT;
    }
    u8 *room;
    err = func__result_room(call, text.bytes + found * to.bytes - found * from.bytes, &room);
    if (err != OK) return err;
    u8 *out = room;
    const u8 *p = text.p;
    for (; found > 0; found--) {
        const u8 *at = find(p, end, from);
        if (is_stopped(call, found)) return ERR_INTERRUPT;
        memcpy(out, p, (size_t)(at - p));
        out += at - p;
        if (to.bytes > 0) memcpy(out, to.p, to.bytes);
        out += to.bytes;
        p = at + from.bytes;
    }
    if (p < end) memcpy(out, p, (size_t)(end - p));
    out += end - p;
    func__result_set(room, (size_t)(out - room), result_out);
    return OK;
}

static Err
concat(FuncCall *call, u32 argc, const Cell *argv, Slice separator, Cell *result_out)
{
    Slice *text = ARENA_NEW_ARRAY(call->arena, Slice, argc);
    if (text == NULL) return ERR_NOMEM;
    u64 bytes = 0;
    u32 count = 0;
    for (u32 i = 0; i < argc; i++) {
        if (argv[i].type == CELL_NULL) continue;
        Err err = func__text_arg(call, &argv[i], &text[count]);
        if (err != OK) return err;
        bytes += text[count].bytes + (count > 0 ? separator.bytes : 0);
        count++;
    }
    u8 *room;
    Err err = func__result_room(call, bytes, &room);
    if (err != OK) return err;
    u8 *out = room;
    for (u32 i = 0; i < count; i++) {
        if (i > 0 && separator.bytes > 0) memcpy(out, separator.p, separator.bytes);
        out += i > 0 ? separator.bytes : 0;
        if (text[i].bytes > 0) memcpy(out, text[i].p, text[i].bytes);
        out += text[i].bytes;
    }
    func__result_set(room, (size_t)bytes, result_out);
    return OK;
}

static Err
run_concat(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    return concat(call, argc, argv, SLICE_NONE, result_out);
}

static Err
run_concat_ws(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    if (argv[0].type == CELL_NULL) return OK;
    Slice separator;
    Err err = func__text_arg(call, &argv[0], &separator);
    return err != OK ? err : concat(call, argc - 1, argv + 1, separator, result_out);
}

/* ---- characters and hexadecimal ---- */

static Err
run_char(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    u8 *room;
    Err err = func__result_room(call, (u64)argc * 4, &room);
    if (err != OK) return err;
    size_t bytes = 0;
    for (u32 i = 0; i < argc; i++) {
        i64 c = cell_to_int(&argv[i]);
        bytes += utf8_put(room + bytes, c < 0 || c > 0x10FFFF ? 0xFFFD : (u32)c);
    }
    func__result_set(room, bytes, result_out);
    return OK;
}

static Err
run_hex(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    Slice bytes;
    u8 *room;
    Err err = func__text_arg(call, argv, &bytes);
    if (err == OK) err = func__result_room(call, (u64)bytes.bytes * 2, &room);
    if (err != OK) return err;
    for (size_t i = 0; i < bytes.bytes; i++) {
        room[i * 2] = (u8)HEX_DIGITS[bytes.p[i] >> 4];
        room[i * 2 + 1] = (u8)HEX_DIGITS[bytes.p[i] & 15];
    }
    func__result_set(room, bytes.bytes * 2, result_out);
    return OK;
}

static bool
holds_character(Slice set, u32 wanted)
{
    const u8 *end = set.p + set.bytes;
    for (const u8 *p = set.p; p < end;) {
        if (func__utf8_read(&p, end) == wanted) return true;
    }
    return false;
}

static Err
run_unhex(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    if (argv[0].type == CELL_NULL || (argc == 2 && argv[1].type == CELL_NULL)) return OK;
    Slice text, ignored = SLICE_NONE;
    u8 *room;
    Err err = func__c_text_arg(call, &argv[0], &text);
    if (err == OK && argc == 2) err = func__text_arg(call, &argv[1], &ignored);
    if (err == OK) err = func__result_room(call, text.bytes / 2, &room);
    if (err != OK) return err;
    size_t bytes = 0;
    const u8 *p = text.p, *end = p + text.bytes;
    while (p < end) {
        i32 high = func__hex_digit(*p);
        if (high < 0) {
            if (!holds_character(ignored, func__utf8_read(&p, end))) return OK;
            continue;
        }
        i32 low = p + 1 < end ? func__hex_digit(p[1]) : -1;
        if (low < 0) return OK;
        room[bytes++] = (u8)(high << 4 | low);
        p += 2;
    }
    *result_out = cell_blob(room, bytes);
    return OK;
}

/* Value of exactly `count` hexadecimal digits at p; false if they are not there. */
static bool
read_hex(const u8 *p, const u8 *end, u32 count, u32 *value_out)
{
    if ((size_t)(end - p) < count) return false;
    u32 value = 0;
    for (u32 i = 0; i < count; i++) {
        i32 digit = func__hex_digit(p[i]);
        if (digit < 0) return false;
        value = value << 4 | (u32)digit;
    }
    *value_out = value;
    return true;
}

/* The escape behind a backslash at *p: its character; false if it is none. */
static bool
unistr_escape(const u8 **p, const u8 *end, u32 *value_out)
{
    if (*p >= end) return false;
    u32 head = 1, digits;
    switch (**p) {
    case '\\':
        *value_out = '\\';
        (*p)++;
        return true;
    case '+': digits = 6; break;
    case 'u': digits = 4; break;
    case 'U': digits = 8; break;
    default:
        head = 0;
        digits = 4;
        break;
    }
    if (!read_hex(*p + head, end, digits, value_out)) return false;
    *p += head + digits;
    return true;
}

static Err
run_unistr(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (argv->type == CELL_NULL) return OK;
    Slice text;
    u8 *room;
    Err err = func__text_arg(call, argv, &text);
    if (err == OK) err = func__result_room(call, text.bytes, &room);
    if (err != OK) return err;
    u8 *out = room;
    const u8 *p = text.p, *end = p + text.bytes;
    while (p < end && *p != 0) {
        if (*p != '\\') {
            *out++ = *p++;
            continue;
        }
        u32 value;
        p++;
        if (!unistr_escape(&p, end, &value)) {
            return err_set(call->msg, ERR_SQL, "invalid Unicode escape");
        }
        out += utf8_put(out, value);
    }
    /* Behind a NUL nothing is looked at. */
    if (p < end) memcpy(out, p, (size_t)(end - p));
    out += end - p;
    func__result_set(room, (size_t)(out - room), result_out);
    return OK;
}

#define SCALAR(n, low, high, f, fn)                                        \
    {                                                                      \
        .name = n, .argc_min = low, .argc_max = high, .kind = FUNC_SCALAR, \
        .flags = FUNC_INNOCUOUS | (f), .scalar = fn                        \
    }

static const FuncDef DEFS[] = {
    SCALAR("char", 0, -1, 0, run_char),
    SCALAR("concat", 1, -1, 0, run_concat),
    SCALAR("concat_ws", 2, -1, 0, run_concat_ws),
    SCALAR("hex", 1, 1, 0, run_hex),
    SCALAR("instr", 2, 2, 0, run_instr),
    SCALAR("length", 1, 1, 0, run_length),
    SCALAR("lower", 1, 1, 0, run_lower),
    SCALAR("ltrim", 1, 1, 0, run_ltrim),
    SCALAR("ltrim", 2, 2, 0, run_ltrim),
    SCALAR("octet_length", 1, 1, 0, run_octet_length),
    SCALAR("replace", 3, 3, 0, run_replace),
    SCALAR("rtrim", 1, 1, 0, run_rtrim),
    SCALAR("rtrim", 2, 2, 0, run_rtrim),
    SCALAR("substr", 2, 2, 0, run_substr),
    SCALAR("substr", 3, 3, 0, run_substr),
    SCALAR("substring", 2, 2, 0, run_substr),
    SCALAR("substring", 3, 3, 0, run_substr),
    SCALAR("trim", 1, 1, 0, run_trim),
    SCALAR("trim", 2, 2, 0, run_trim),
    SCALAR("unhex", 1, 1, 0, run_unhex),
    SCALAR("unhex", 2, 2, 0, run_unhex),
    SCALAR("unicode", 1, 1, 0, run_unicode),
    SCALAR("unistr", 1, 1, FUNC_FALLIBLE, run_unistr),
    SCALAR("upper", 1, 1, 0, run_upper),
};

FUNC_FAMILY(func__text, DEFS);
