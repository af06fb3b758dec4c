/*
 * uri.c -- names of databases that are written as URIs (RFC 8089 with SQLite's query parameters).
 */
#include "session/uri.h"

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undo %XX in place. */
static void
percent_decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from != 0; from++) {
        int high = from[0] == '%' ? hex_digit(from[1]) : -1;
        int low = high < 0 ? -1 : hex_digit(from[2]);
        if (low >= 0) {
            *to++ = (char)(high * 16 + low);
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
}

static bool
is_value(const char *text, const char *name, const char **value_out)
{
    size_t length = strlen(name);
    if (strncmp(text, name, length) != 0 || text[length] != '=') return false;
    *value_out = text + length + 1;
    return true;
}

static Err
uri_option(UriName *name, char *option, ErrMsg *msg)
{
    const char *value;
    percent_decode(option);
    if (is_value(option, "mode", &value)) {
        name->names_mode = true;
        if (strcmp(value, "memory") == 0) {
            name->memory = true;
        } else if (strcmp(value, "ro") == 0) {
            name->read_only = true;
        } else if (strcmp(value, "rw") == 0) {
            name->no_create = true;
        } else if (strcmp(value, "rwc") != 0) {
            return err_set(msg, ERR_SQL, "no such access mode: %s", value);
        }
    } else if (is_value(option, "cache", &value)) {
        if (strcmp(value, "shared") != 0 && strcmp(value, "private") != 0) {
            return err_set(msg, ERR_SQL, "no such cache mode: %s", value);
        }
        name->shared = strcmp(value, "shared") == 0;
    } else if (is_value(option, "vfs", &value)) {
        return err_set(msg, ERR_SQL, "no such vfs: %s", value);
    } else if (is_value(option, "weft_writers", &value)) {
        name->multi = strcmp(value, "multi") == 0;
    }
    return OK;
}

Err
uri_parse(const char *file, bool as_uri, UriName *name, ErrMsg *msg)
{
    *name = (UriName){.path = mem_strdup(file == NULL ? "" : file)};
    if (name->path == NULL) return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    if (!as_uri || strncmp(name->path, "file:", 5) != 0) return OK;
    char *fragment = strchr(name->path, '#');
    if (fragment != NULL) *fragment = 0;
    char *query = strchr(name->path, '?');
    if (query != NULL) *query++ = 0;
    char *path = name->path + 5;
    if (path[0] == '/' && path[1] == '/') {
        char *end = strchr(path + 2, '/');
        size_t authority = end == NULL ? strlen(path + 2) : (size_t)(end - path - 2);
        if (authority != 0 && !(authority == 9 && strncmp(path + 2, "localhost", 9) == 0)) {
            return err_set(msg, ERR_SQL, "invalid uri authority: %.*s", (int)authority, path + 2);
        }
        path = end == NULL ? path + 2 + authority : end;
    }
    Err err = OK;
    while (err == OK && query != NULL && *query != 0) {
        char *next = strchr(query, '&');
        if (next != NULL) *next++ = 0;
        err = uri_option(name, query, msg);
        query = next;
    }
    memmove(name->path, path, strlen(path) + 1);
    percent_decode(name->path);
    return err;
}
