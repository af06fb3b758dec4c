/*
 * name_api.c -- database file names with URI parameters, and the one VFS that there is.
 *
 * A sqlite3_filename is a text with more texts behind it: four bytes of zero stand before the name,
 * then come name, parameters (key, value), an empty key, the names of journal and log.
 */
#include "capi/capi.h"

#define FRONT_BYTES 4u

static const char *
skip(const char *text)
{
    return text + strlen(text) + 1;
}

static Err
put_text(Buf *out, const char *text)
{
    return buf_append(out, text, strlen(text) + 1);
}

sqlite3_filename
sqlite3_create_filename(const char *database, const char *journal, const char *wal, int count,
                        const char **params)
{
    Buf out = {0};
    if (database == NULL || journal == NULL || wal == NULL || count < 0) return NULL;
    Err err = buf_append(&out, "\0\0\0\0", FRONT_BYTES);
    if (err == OK) err = put_text(&out, database);
    for (int i = 0; err == OK && i < count * 2; i++)
        err = put_text(&out, params[i] == NULL ? "" : params[i]);
    if (err == OK) err = buf_append_byte(&out, 0);
    if (err == OK) err = put_text(&out, journal);
    if (err == OK) err = put_text(&out, wal);
    if (err == OK) err = buf_append(&out, "\0\0", 2);
    if (err != OK) {
        buf_free(&out);
        return NULL;
    }
    return (sqlite3_filename)(out.p + FRONT_BYTES);
}

void
sqlite3_free_filename(sqlite3_filename name)
{
    if (name == NULL) return;
    mem_free((void *)(uintptr_t)((const u8 *)name - FRONT_BYTES));
}

const char *
sqlite3_uri_parameter(sqlite3_filename name, const char *param)
{
    if (name == NULL || param == NULL) return NULL;
    for (const char *at = skip(name); *at != 0; at = skip(skip(at))) {
        if (strcmp(at, param) == 0) return skip(at);
    }
    return NULL;
}

const char *
sqlite3_uri_key(sqlite3_filename name, int number)
{
    if (name == NULL || number < 0) return NULL;
    const char *at = skip(name);
    for (; *at != 0 && number > 0; number--)
        at = skip(skip(at));
    return *at == 0 ? NULL : at;
}

int
sqlite3_uri_boolean(sqlite3_filename name, const char *param, int otherwise)
{
    static const char *const yes[] = {"yes", "true", "on"};
    static const char *const no[] = {"no", "false", "off"};
    const char *value = sqlite3_uri_parameter(name, param);
    if (value == NULL) return otherwise != 0;
    for (u32 i = 0; i < COUNT_OF(yes); i++) {
        if (text_compare_nocase(value, yes[i]) == 0) return 1;
        if (text_compare_nocase(value, no[i]) == 0) return 0;
    }
    Cell cell = cell_text(value, strlen(value));
    Cell number = cell_numeric_value(&cell);
    return cell_is_number(&number) ? cell_to_int(&number) != 0 : otherwise != 0;
}

sqlite3_int64
sqlite3_uri_int64(sqlite3_filename name, const char *param, sqlite3_int64 otherwise)
{
    const char *value = sqlite3_uri_parameter(name, param);
    if (value == NULL) return otherwise;
    Cell cell = cell_text(value, strlen(value));
    Cell number = cell_numeric_value(&cell);
    return number.type == CELL_INT ? number.u.i : otherwise;
}

const char *
sqlite3_filename_database(sqlite3_filename name)
{
    return name;
}

static const char *
behind_params(sqlite3_filename name)
{
    if (name == NULL) return NULL;
    const char *at = skip(name);
    while (*at != 0)
        at = skip(skip(at));
    return at + 1;
}

const char *
sqlite3_filename_journal(sqlite3_filename name)
{
    return behind_params(name);
}

const char *
sqlite3_filename_wal(sqlite3_filename name)
{
    const char *journal = behind_params(name);
    return journal == NULL ? NULL : skip(journal);
}

/* Files are the store's: there is no sqlite3_file behind a name. */
sqlite3_file *
sqlite3_database_file_object(const char *name)
{
    (void)name;
    return NULL;
}
