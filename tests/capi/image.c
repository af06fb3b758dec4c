/*
 * image.c -- image.py's hand: sqlite3_serialize and sqlite3_deserialize from the command line.
 *
 * image FROM TO: FROM is SQL text (*.sql) to run, or an image to take; TO gets the bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite3.h"

static int
fail(sqlite3 *db, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(db));
    return 1;
}

/* NUL-terminated. */
static unsigned char *
read_file(const char *path, sqlite3_int64 *bytes_out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    (void)fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    (void)fseek(file, 0, SEEK_SET);
    unsigned char *text = sqlite3_malloc64((sqlite3_uint64)bytes + 1);
    *bytes_out = (sqlite3_int64)fread(text, 1, (size_t)bytes, file);
    text[*bytes_out] = 0;
    fclose(file);
    return text;
}

int
main(int argc, char **argv)
{
    sqlite3 *db;
    sqlite3_int64 bytes;
    if (argc != 3 || sqlite3_open(":memory:", &db) != SQLITE_OK) return 2;
    unsigned char *from = read_file(argv[1], &bytes);
    if (from == NULL) return 2;
    if (strstr(argv[1], ".sql") != NULL) {
        if (sqlite3_exec(db, (const char *)from, NULL, NULL, NULL) != SQLITE_OK)
            return fail(db, "sql");
        sqlite3_free(from);
    } else if (sqlite3_deserialize(db, "main", from, bytes, bytes,
                                   SQLITE_DESERIALIZE_FREEONCLOSE |
                                       SQLITE_DESERIALIZE_RESIZEABLE) != SQLITE_OK) {
        return fail(db, "deserialize");
    }
    unsigned char *image = sqlite3_serialize(db, "main", &bytes, 0);
    if (image == NULL) return fail(db, "serialize");
    FILE *to = fopen(argv[2], "wb");
    if (to == NULL) return 2;
    size_t wrote = fwrite(image, 1, (size_t)bytes, to);
    if (fclose(to) != 0 || wrote != (size_t)bytes) return 2;
    sqlite3_free(image);
    return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}
