/*
 * script.h -- cut a sqllogictest script into records.
 *
 * The rules: a CR at the end of a line goes; a line that begins with '#' is not there at all; a
 * line of white space separates records.
 */
#pragma once

#include "base/types.h"

#define SCRIPT_WORDS_MAX 8

typedef enum RecordKind {
    RECORD_STATEMENT,
    RECORD_QUERY,
    RECORD_HALT,
    RECORD_HASH_THRESHOLD,
    RECORD_UNKNOWN
} RecordKind;

typedef struct Record {
    RecordKind kind;
    u32 line;     /* Of the head, from 1. */
    bool skipped; /* By its conditions, for the engine asked about. */
    bool expect_error;
    const char *error_text; /* What the message must contain; "" for any. */
    char types[256];        /* QUERY: one letter a column. */
    char sort[16];          /* QUERY: nosort, rowsort or valuesort. */
    char label[21];         /* QUERY: cut to 20 bytes; "" if none. */
    char *sql;              /* Lines joined by LF, NUL-terminated; in the script's memory. */
    char **expected;        /* QUERY: lines of the expected result. */
    u32 expected_count;
} Record;

typedef struct Script Script;

/* NULL with a message on standard error when the file cannot be read. */
Script *script_open(const char *path, const char *engine_name);
/* The next record; false at the end.  Valid until the next call. */
bool script_next(Script *script, Record *record_out);
void script_close(Script *script);
