/*
 * sqlitefile_fuzz.c -- any bytes as a SQLite file, with a log or a journal beside it.
 *
 * Checked: no crash, no endless walk, in strict reading an error for what salvage calls a finding.
 * Input: options (1 byte: salvage, wal, journal), bytes of the database file in units of 64 (1
 * byte), the file, and the rest is what lies beside it.  Seeds: files of sqlite3 with two bytes
 * before them.
 */
#include <stddef.h>
#include <stdint.h>

#include "sqlitefile/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

typedef struct Reader {
    Sqf *sqf;
    Arena arena;
    u64 rows;
} Reader;

static Err
take(void *arg, i64 rowid, Slice payload)
{
    Reader *reader = arg;
    Cell cell[20];
    u32 count;
    (void)rowid;
    arena_reset(&reader->arena);
    Err err = sqf_record_decode(payload, sqf_info(reader->sqf)->encoding, &reader->arena, 20, cell,
                                &count);
    for (u32 i = 0; err == OK && i < count; i++) {
        Slice text;
        err = cell_text_bytes(&cell[i], &reader->arena, &text);
    }
    reader->rows++;
    return err == ERR_CORRUPT ? OK : err;
}

static Err
read_all(Sqf *sqf, ErrMsg *msg)
{
    Reader reader = {.sqf = sqf};
    SqfSchemaRow *row;
    u32 count;
    Arena arena;
    arena_init(&arena, NULL);
    Err err = sqf_schema(sqf, &arena, &row, &count, msg);
    for (u32 i = 0; err == OK && i < count; i++) {
        if (row[i].root == 0) continue;
        err = row[i].type[0] == 't' ? sqf_scan_table(sqf, row[i].root, take, &reader, msg)
                                    : sqf_scan_index(sqf, row[i].root, take, &reader, msg);
    }
    if (err == OK) err = sqf_check_free(sqf, msg);
    arena_free(&reader.arena);
    arena_free(&arena);
    return err;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2) return 0;
    size_t main_bytes = MIN_OF((size_t)data[1] * 64, bytes - 2);
    bool alone = (data[0] & 6) == 0;
    Slice file = SLICE(data + 2, alone ? bytes - 2 : main_bytes);
    Slice beside = SLICE(data + 2 + main_bytes, bytes - 2 - main_bytes);
    SqfOpen open = {
        .name = "f", .database = sqf_source_memory(&file), .salvage = (data[0] & 1) != 0};
    if ((data[0] & 2) != 0) open.wal = sqf_source_memory(&beside);
    if ((data[0] & 4) != 0) open.journal = sqf_source_memory(&beside);
    Sqf *sqf;
    ErrMsg msg = {0};
    Err err = sqf_open(&open, &sqf, &msg);
    if (err == OK) {
        err = read_all(sqf, &msg);
        if (!open.salvage) ASSERT(sqf_findings(sqf) == 0);
        sqf_close(sqf);
    }
    ASSERT(err == OK || msg.err == err);
    err_clear(&msg);
    return 0;
}
