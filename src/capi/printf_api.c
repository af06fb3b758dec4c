/*
 * printf_api.c -- sqlite3_mprintf and its kin, and sqlite3_str.
 *
 * One formatter serves SQL and C: the arguments are read off the va_list as the format asks for
 * them, turned into values, and given to the built-in function format().
 */
#include <limits.h>
#include <stdarg.h>

#include "capi/capi.h"

#define ARGS_MAX 128u

typedef struct Arguments {
    Cell cell[ARGS_MAX];
    u32 count;
    char chars[ARGS_MAX][5]; /* Texts of %c. */
    void *to_free[ARGS_MAX]; /* Arguments of %z. */
    u32 free_count;
} Arguments;

static void
add_int(Arguments *arguments, i64 value)
{
    arguments->cell[arguments->count++] = cell_int(value);
}

static void
add_text(Arguments *arguments, const char *text)
{
    arguments->cell[arguments->count++] = text == NULL ? cell_null()
                                                       : cell_text(text, strlen(text));
}

/* The letter after flags, width and precision; reads `*` and notes length modifiers. */
static const char *
skip_spec(const char *at, va_list *args, Arguments *arguments, int *longs_out)
{
    *longs_out = 0;
    while (*at != 0 && strchr("-+ #0!,'.0123456789*lhLqjzt", *at) != NULL) {
        if (*at == '*' && arguments->count < ARGS_MAX) add_int(arguments, va_arg(*args, int));
        if (*at == 'l') (*longs_out)++;
        if (*at == 'z' || *at == 'q') break; /* Conversions of SQLite's, not modifiers. */
        at++;
    }
    return at;
}

static void
read_argument(char conversion, int longs, va_list *args, Arguments *arguments)
{
    switch (conversion) {
    case 'd':
    case 'i':
        add_int(arguments, longs >= 2   ? va_arg(*args, long long)
                           : longs == 1 ? va_arg(*args, long)
                                        : va_arg(*args, int));
        return;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        add_int(arguments, longs >= 2   ? (i64)va_arg(*args, unsigned long long)
                           : longs == 1 ? (i64)va_arg(*args, unsigned long)
                                        : (i64)va_arg(*args, unsigned));
        return;
    case 'p': add_int(arguments, (i64)(intptr_t)va_arg(*args, void *)); return;
    case 'f':
    case 'e':
    case 'E':
    case 'g':
    case 'G': arguments->cell[arguments->count++] = cell_real(va_arg(*args, double)); return;
    case 'c': {
        char *text = arguments->chars[arguments->count];
        text[utf8_put((u8 *)text, (u32)va_arg(*args, int))] = 0;
        add_text(arguments, text);
        return;
    }
    case 'z': {
        char *text = va_arg(*args, char *);
        arguments->to_free[arguments->free_count++] = text;
        add_text(arguments, text);
        return;
    }
    case 's':
    case 'q':
    case 'Q':
    case 'w': add_text(arguments, va_arg(*args, char *)); return;
    case 'n': (void)va_arg(*args, int *); return;
    default: return;
    }
}

static void
read_arguments(const char *format, va_list *args, Arguments *arguments)
{
    arguments->count = 1; /* The format itself. */
    arguments->free_count = 0;
    for (const char *at = strchr(format, '%'); at != NULL; at = strchr(at + 1, '%')) {
        int longs;
        at = skip_spec(at + 1, args, arguments, &longs);
        if (*at == 0 || arguments->count + 2 >= ARGS_MAX) break;
        if (*at != '%') read_argument(*at, longs, args, arguments);
    }
}

static const FuncDef *
format_function(void)
{
    const FuncTable *functions = session_builtin_functions();
    return functions == NULL ? NULL : func_find(functions, SLICE_LITERAL("format"), 2, NULL);
}

/* The text is the caller's, freed with sqlite3_free. */
static char *
format_text(const char *format, va_list *args)
{
    Arguments *arguments = MEM_NEW(Arguments);
    const FuncDef *def = format_function();
    if (arguments == NULL || def == NULL) {
        mem_free(arguments);
        return NULL;
    }
    Arena arena;
    ErrMsg msg = {.sql_offset = -1};
    FuncEnv env = {.length_max = 1000000000};
    Cell result = cell_null();
    char *text = NULL;
    arena_init(&arena, NULL);
    read_arguments(format, args, arguments);
    arguments->cell[0] = cell_text(format, strlen(format));
    FuncCall call = {
        .def = def, .env = &env, .arena = &arena, .collation = &collation_binary, .msg = &msg};
    Err err = def->scalar(&call, arguments->count, arguments->cell, &result);
    if (err == OK && result.type == CELL_TEXT) text = mem_strndup(result.u.p, result.bytes);
    if (err == OK && result.type == CELL_NULL) text = mem_strdup("");
    for (u32 i = 0; i < arguments->free_count; i++)
        mem_free(arguments->to_free[i]);
    err_clear(&msg);
    arena_free(&arena);
    mem_free(arguments);
    return text;
}

char *
sqlite3_vmprintf(const char *format, va_list args)
{
    if (format == NULL) return NULL;
    va_list copy;
    va_copy(copy, args);
    char *text = format_text(format, &copy);
    va_end(copy);
    return text;
}

char *
sqlite3_mprintf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = sqlite3_vmprintf(format, args);
    va_end(args);
    return text;
}

char *
sqlite3_vsnprintf(int bytes, char *out, const char *format, va_list args)
{
    if (bytes <= 0 || out == NULL) return out;
    char *text = sqlite3_vmprintf(format, args);
    size_t length = text == NULL ? 0 : strlen(text);
    length = MIN_OF(length, (size_t)bytes - 1);
    if (length > 0) memcpy(out, text, length);
    out[length] = 0;
    mem_free(text);
    return out;
}

char *
sqlite3_snprintf(int bytes, char *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sqlite3_vsnprintf(bytes, out, format, args);
    va_end(args);
    return out;
}

/* ---- sqlite3_str ---- */

struct sqlite3_str {
    Buf buf; /* A NUL follows the bytes. */
    int error;
};

sqlite3_str *
sqlite3_str_new(sqlite3 *db)
{
    (void)db;
    return MEM_NEW(sqlite3_str);
}

void
sqlite3_str_append(sqlite3_str *str, const char *text, int bytes)
{
    if (str == NULL || text == NULL || str->error != SQLITE_OK || bytes < 0) return;
    if (buf_reserve(&str->buf, (size_t)bytes + 1) != OK ||
        buf_append(&str->buf, text, (size_t)bytes) != OK) {
        str->error = SQLITE_NOMEM;
        return;
    }
    str->buf.p[str->buf.bytes] = 0;
}

void
sqlite3_str_appendall(sqlite3_str *str, const char *text)
{
    if (text != NULL) sqlite3_str_append(str, text, (int)strlen(text));
}

void
sqlite3_str_appendchar(sqlite3_str *str, int count, char c)
{
    while (count-- > 0)
        sqlite3_str_append(str, &c, 1);
}

void
sqlite3_str_vappendf(sqlite3_str *str, const char *format, va_list args)
{
    char *text = sqlite3_vmprintf(format, args);
    if (text == NULL) {
        if (str != NULL) str->error = SQLITE_NOMEM;
        return;
    }
    sqlite3_str_appendall(str, text);
    mem_free(text);
}

void
sqlite3_str_appendf(sqlite3_str *str, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sqlite3_str_vappendf(str, format, args);
    va_end(args);
}

int
sqlite3_str_errcode(sqlite3_str *str)
{
    return str == NULL ? SQLITE_NOMEM : str->error;
}

int
sqlite3_str_length(sqlite3_str *str)
{
    return str == NULL ? 0 : (int)str->buf.bytes;
}

char *
sqlite3_str_value(sqlite3_str *str)
{
    return str == NULL || str->buf.bytes == 0 ? NULL : (char *)str->buf.p;
}

void
sqlite3_str_reset(sqlite3_str *str)
{
    if (str == NULL) return;
    buf_clear(&str->buf);
    str->error = SQLITE_OK;
}

char *
sqlite3_str_finish(sqlite3_str *str)
{
    if (str == NULL) return NULL;
    char *text = str->error == SQLITE_OK && str->buf.bytes > 0 ? (char *)str->buf.p : NULL;
    if (text == NULL) mem_free(str->buf.p);
    mem_free(str);
    return text;
}

void
sqlite3_str_free(sqlite3_str *str)
{
    sqlite3_free(sqlite3_str_finish(str));
}

void
sqlite3_str_truncate(sqlite3_str *str, int bytes)
{
    if (str == NULL || bytes < 0 || (size_t)bytes >= str->buf.bytes) return;
    str->buf.bytes = (size_t)bytes;
    str->buf.p[bytes] = 0;
}
