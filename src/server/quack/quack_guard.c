/*
 * quack_guard.c -- SQL of a client reaches no file of its choice.
 *
 * ATTACH and VACUUM INTO name files of the server's machine, so they are refused before they are
 * prepared.  Only the first words matter: no other statement takes a file name.
 */
#include "server/quack/quack_run.h"

static bool
is_space(u8 c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
is_word(u8 c)
{
    return c == '_' || c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z');
}

/* Skip blanks, comments and empty statements. */
static Slice
skip_blank(Slice sql)
{
    while (sql.bytes > 0) {
        size_t skip = 0;
        if (is_space(sql.p[0]) || sql.p[0] == ';') {
            skip = 1;
        } else if (sql.bytes >= 2 && sql.p[0] == '-' && sql.p[1] == '-') {
            while (skip < sql.bytes && sql.p[skip] != '\n')
                skip++;
        } else if (sql.bytes >= 2 && sql.p[0] == '/' && sql.p[1] == '*') {
            skip = 2;
            while (skip < sql.bytes && !(sql.p[skip] == '/' && sql.p[skip - 1] == '*' && skip > 2))
                skip++;
            if (skip < sql.bytes) skip++;
        } else {
            break;
        }
        sql = (Slice){sql.p + skip, sql.bytes - skip};
    }
    return sql;
}

/* Take the next word; empty when something else comes. */
static Slice
word_take(Slice *sql)
{
    *sql = skip_blank(*sql);
    size_t bytes = 0;
    while (bytes < sql->bytes && is_word(sql->p[bytes]))
        bytes++;
    Slice word = {sql->p, bytes};
    *sql = (Slice){sql->p + bytes, sql->bytes - bytes};
    return word;
}

bool
quack__reaches_files(Slice sql)
{
    Slice word = word_take(&sql);
    while (slice_equal_nocase(word, SLICE_LITERAL("explain")) ||
           slice_equal_nocase(word, SLICE_LITERAL("query")) ||
           slice_equal_nocase(word, SLICE_LITERAL("plan")))
        word = word_take(&sql);
    if (slice_equal_nocase(word, SLICE_LITERAL("attach"))) return true;
    if (!slice_equal_nocase(word, SLICE_LITERAL("vacuum"))) return false;
    /* VACUUM [schema] [INTO file]: anything but a plain name afterwards may be INTO. */
    while (sql.bytes > 0) {
        word = word_take(&sql);
        if (slice_equal_nocase(word, SLICE_LITERAL("into"))) return true;
        if (word.bytes == 0 && sql.bytes > 0) sql = (Slice){sql.p + 1, sql.bytes - 1};
    }
    return false;
}
