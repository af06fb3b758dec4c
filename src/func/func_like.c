/*
 * func_like.c -- LIKE and GLOB.
 *
 * One loop without recursion: at a wildcard for any run it remembers pattern and text; on a
 * mismatch it goes back there with one more character taken by the run.  Only the last such place
 * matters, so the cost is at most pattern times text.
 */
#include "func/func_private.h"

#define PATTERN_BYTES_MAX 50000

typedef struct Wildcards {
    u32 any_run, any_one; /* 0: none. */
    u32 escape;           /* 0: none. */
    bool sets;            /* "[...]" */
    bool fold;            /* A-Z equals a-z. */
} Wildcards;

/* The next character, 0 at the end. */
static inline u32
next(const u8 **p, const u8 *end)
{
    if (*p >= end) return 0;
    return **p < 0x80 ? *(*p)++ : func__utf8_read(p, end);
}

static inline u32
folded(u32 c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* The set at *pattern (behind its bracket) against `c`; moves behind it.  False also for a set that
   does not end. */
static bool
match_set(const u8 **pattern, const u8 *end, u32 c)
{
    u32 before = 0;
    bool seen = false, inverted = false;
    u32 item = next(pattern, end);
    if (item == '^') {
        inverted = true;
        item = next(pattern, end);
    }
    if (item == ']') {
        seen = c == ']';
        item = next(pattern, end);
    }
    while (item != 0 && item != ']') {
        bool range = item == '-' && *pattern < end && **pattern != ']' && before > 0;
        if (range) {
            item = next(pattern, end);
            if (c >= before && c <= item) seen = true;
            before = 0;
        } else {
            if (c == item) seen = true;
            before = item;
        }
        item = next(pattern, end);
    }
    return item != 0 && seen != inverted;
}

/* One pattern element that is no run against the text at *text; both move on. */
static bool
match_one(const Wildcards *wild, const u8 **pattern, const u8 *pattern_end, const u8 **text,
          const u8 *text_end)
{
    u32 c = next(pattern, pattern_end);
    bool escaped = false;
    if (wild->escape != 0 && c == wild->escape) {
        c = next(pattern, pattern_end);
        if (c == 0) return false;
        escaped = true;
    }
    if (*text >= text_end) return false;
    u32 t = next(text, text_end);
    if (wild->sets && c == '[') return match_set(pattern, pattern_end, t);
    if (c == t) return true;
    if (wild->fold && c < 0x80 && t < 0x80 && folded(c) == folded(t)) return true;
    return c == wild->any_one && !escaped && wild->any_one != 0;
}

/* A byte of a pattern that stands for itself and is ASCII. */
static inline bool
is_plain(const Wildcards *wild, u8 c)
{
    return c < 0x80 && c != wild->any_run && c != wild->any_one && c != wild->escape &&
           !(wild->sets && c == '[');
}

static inline bool
is_letter(u32 c)
{
    return folded(c) >= 'a' && folded(c) <= 'z';
}

/* The first byte that the plain pattern byte `c` matches, or `end`. */
static const u8 *
find_plain(const Wildcards *wild, u8 c, const u8 *p, const u8 *end)
{
    if (!wild->fold || !is_letter(c)) {
        const u8 *found = memchr(p, c, (size_t)(end - p));
        return found == NULL ? end : found;
    }
    u8 small = c | 0x20;
    while (p < end && (*p | 0x20) != small) {
        p++;
    }
    return p;
}

/* Pass over plain bytes that are equal; false when two differ. */
static bool
match_plain(const Wildcards *wild, const u8 **pattern, const u8 *pattern_end, const u8 **text,
            const u8 *text_end)
{
    const u8 *p = *pattern, *t = *text;
    bool equal = true;
    while (p < pattern_end && t < text_end && is_plain(wild, *p)) {
        equal = *p == *t || (wild->fold && is_letter(*p) && (*p | 0x20) == (*t | 0x20));
        if (!equal) break;
        p++;
        t++;
    }
    *pattern = p;
    *text = t;
    return equal;
}

static bool
match(const Wildcards *wild, Slice pattern, Slice text)
{
    const u8 *p = pattern.p, *p_end = p + pattern.bytes;
    const u8 *t = text.p, *t_end = t + text.bytes;
    const u8 *back_pattern = NULL, *back_text = NULL;
    for (;;) {
        bool equal = match_plain(wild, &p, p_end, &t, t_end);
        if (equal && p < p_end) {
            const u8 *after = p;
            if (wild->any_run != 0 && next(&after, p_end) == wild->any_run) {
                p = back_pattern = after;
                back_text = t;
                if (p == p_end) return true;
            } else if (match_one(wild, &p, p_end, &t, t_end)) {
                continue;
            } else {
                equal = false;
            }
        } else if (equal && t == t_end) {
            return true;
        } else {
            equal = false;
        }
        if (!equal) {
            /* Back to the last run: it takes one character more. */
            if (back_pattern == NULL || back_text >= t_end) return false;
            (void)next(&back_text, t_end);
            p = back_pattern;
        }
        /* Behind a run: on to where the next plain byte can match. */
        if (is_plain(wild, *p)) back_text = find_plain(wild, *p, back_text, t_end);
        t = back_text;
    }
}

bool
func_like(Slice pattern, Slice text, u32 escape, bool case_sensitive)
{
    Wildcards wild = {.any_run = escape == '%' ? 0 : '%',
                      .any_one = escape == '_' ? 0 : '_',
                      .escape = escape,
                      .fold = !case_sensitive};
    return match(&wild, pattern, text);
}

bool
func_glob(Slice pattern, Slice text)
{
    Wildcards wild = {.any_run = '*', .any_one = '?', .sets = true};
    return match(&wild, pattern, text);
}

static Err
check_pattern(FuncCall *call, const Cell *pattern, Slice *text_out)
{
    u32 bytes_max = call->env != NULL && call->env->like_pattern_max != 0
                        ? call->env->like_pattern_max
                        : PATTERN_BYTES_MAX;
    Err err = func__text_arg(call, pattern, text_out);
    if (err != OK) return err;
    if (text_out->bytes > bytes_max) {
        return err_set(call->msg, ERR_SQL, "LIKE or GLOB pattern too complex");
    }
    *text_out = func__until_nul(*text_out);
    return OK;
}

/* A blob on either side never matches (SQLITE_LIKE_DOESNT_MATCH_BLOBS, as most builds have it). */
static bool
has_blob(const Cell *argv)
{
    return argv[0].type == CELL_BLOB || argv[1].type == CELL_BLOB;
}

/* like(pattern, text [, escape]): "text LIKE pattern". */
static Err
run_like(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    if (has_blob(argv)) {
        *result_out = cell_int(0);
        return OK;
    }
    Slice pattern, text;
    u32 escape = 0;
    Err err = check_pattern(call, &argv[0], &pattern);
    if (err != OK) return err;
    if (argc == 3) {
        if (argv[2].type == CELL_NULL) return OK;
        err = func__c_text_arg(call, &argv[2], &text);
        if (err != OK) return err;
        const u8 *p = text.p, *end = p + text.bytes;
        if (p == end || func__utf8_skip(p, end) != end) {
            return err_set(call->msg, ERR_SQL, "ESCAPE expression must be a single character");
        }
        escape = func__utf8_read(&p, end);
    }
    if (argv[0].type == CELL_NULL || argv[1].type == CELL_NULL) return OK;
    err = func__c_text_arg(call, &argv[1], &text);
    if (err != OK) return err;
    bool exact = call->env != NULL && call->env->case_sensitive_like;
    *result_out = cell_int(func_like(pattern, text, escape, exact));
    return OK;
}

static Err
run_glob(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (has_blob(argv)) {
        *result_out = cell_int(0);
        return OK;
    }
    Slice pattern, text;
    Err err = check_pattern(call, &argv[0], &pattern);
    if (err != OK) return err;
    if (argv[0].type == CELL_NULL || argv[1].type == CELL_NULL) return OK;
    err = func__c_text_arg(call, &argv[1], &text);
    if (err == OK) *result_out = cell_int(func_glob(pattern, text));
    return err;
}

static const FuncDef DEFS[] = {
    {.name = "like",
     .argc_min = 2,
     .argc_max = 2,
     .flags = FUNC_INNOCUOUS | FUNC_LIKE,
     .kernel = FUNC_KERNEL_LIKE,
     .scalar = run_like},
    {.name = "like",
     .argc_min = 3,
     .argc_max = 3,
     .flags = FUNC_INNOCUOUS | FUNC_LIKE | FUNC_FALLIBLE,
     .scalar = run_like},
    {.name = "glob",
     .argc_min = 2,
     .argc_max = 2,
     .flags = FUNC_INNOCUOUS | FUNC_LIKE,
     .scalar = run_glob},
};

FUNC_FAMILY(func__like_family, DEFS);
