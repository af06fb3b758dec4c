/*
 * memory_file.h -- a SQLite file in memory, written by our writer from a seed; for tests.
 */
#pragma once

#include "sqlitefile/read.h"
#include "sqlitefile/write.h"
#include "unit/cmocka_all.h"

static inline Err
memory_write(void *arg, u64 offset, const void *bytes, size_t count, ErrMsg *msg)
{
    Buf *file = arg;
    (void)msg;
    if (file->bytes < offset + count) {
        size_t before = file->bytes;
        Err err = buf_reserve(file, (size_t)offset + count - before);
        if (err != OK) return err;
        memset(file->p + before, 0, (size_t)offset + count - before);
        file->bytes = (size_t)offset + count;
    }
    memcpy(file->p + offset, bytes, count);
    return OK;
}

/* What the file of a seed holds: rows of one table, entries of one index, and their sum. */
typedef struct Made {
    Buf file;
    u64 rows, hash;
} Made;

/* Row `i` of a seed: its record. */
static inline Err
made_record(u64 seed, u64 i, u32 page_bytes, SqfEncoding encoding, Buf *record)
{
    Rng rng;
    u8 text[400];
    rng_seed(&rng, seed * 1000003 + i);
    u64 length = rng_below(&rng, 8) == 0 ? rng_below(&rng, 3 * page_bytes) : rng_below(&rng, 60);
    u8 *big = mem_alloc((size_t)length + 1);
    if (big == NULL) return ERR_NOMEM;
    for (u64 k = 0; k < length; k++)
        big[k] = (u8)rng_next(&rng);
    for (u32 k = 0; k < sizeof(text); k++)
        text[k] = (u8)('a' + rng_below(&rng, 26));
    Cell cell[5] = {
        cell_int((i64)i), /* First, so that entries are in order. */
        cell_blob(big, (size_t)length),
        cell_text(text, (size_t)rng_below(&rng, 30)),
        cell_real((f64)(i64)rng_next(&rng) / 3),
        cell_null(),
    };
    buf_clear(record);
    Err err = sqf_record_encode(cell, COUNT_OF(cell), NULL, encoding, record);
    mem_free(big);
    return err;
}

static inline Err
made_tree(SqfWriter *writer, u32 at, bool is_index, u64 seed, u64 rows, const SqfCreate *create,
          Made *made, Buf *record)
{
    ErrMsg msg = {0};
    Err err = sqf_tree_begin(writer, at, is_index, &msg);
    for (u64 i = 0; err == OK && i < rows; i++) {
        err = made_record(seed + at, i, create->page_bytes, create->encoding, record);
        if (err != OK) break;
        made->hash += hash_bytes(record->p, record->bytes, is_index ? 0 : i * 3 + 1);
        err = is_index ? sqf_tree_entry(writer, buf_slice(record), &msg)
                       : sqf_tree_row(writer, (i64)(i * 3 + 1), buf_slice(record), &msg);
    }
    if (err == OK) err = sqf_tree_end(writer, &msg);
    err_clear(&msg);
    return err;
}

static inline Err
made_schema_row(SqfWriter *writer, i64 rowid, const char *type, const char *name, u32 root,
                const char *sql, const SqfCreate *create, Buf *record)
{
    ErrMsg msg = {0};
    Cell cell[5] = {cell_text(type, strlen(type)), cell_text(name, strlen(name)),
                    cell_text(name, strlen(name)), cell_int(root), cell_text(sql, strlen(sql))};
    buf_clear(record);
    Err err = sqf_record_encode(cell, 5, NULL, create->encoding, record);
    if (err == OK) err = sqf_tree_row(writer, rowid, buf_slice(record), &msg);
    err_clear(&msg);
    return err;
}

static inline Err
made_file(u64 seed, u64 rows, const SqfCreate *create, Made *made)
{
    SqfWriter *writer = NULL;
    SqfTarget target = {&made->file, memory_write};
    ErrMsg msg = {0};
    Buf record = {0};
    u64 bytes = 0;
    made->rows = rows;
    Err err = sqf_writer_open(create, &target, 2, &writer, &msg);
    if (err == OK) err = made_tree(writer, 0, false, seed, rows, create, made, &record);
    if (err == OK) err = made_tree(writer, 1, true, seed, rows, create, made, &record);
    if (err == OK) err = sqf_tree_begin(writer, SQF_TREE_SCHEMA, false, &msg);
    if (err == OK)
        err = made_schema_row(writer, 1, "table", "t", sqf_writer_root(writer, 0),
                              "CREATE TABLE t(a,b,c,d,e)", create, &record);
    if (err == OK)
        err = made_schema_row(writer, 2, "table", "w", sqf_writer_root(writer, 1),
                              "CREATE TABLE w(a,b,c,d,e,PRIMARY KEY(a,b,c,d)) WITHOUT ROWID",
                              create, &record);
    if (err == OK) err = sqf_tree_end(writer, &msg);
    if (err == OK) err = sqf_writer_finish(writer, &bytes, &msg);
    if (err == OK && made->file.bytes < bytes)
        err = memory_write(&made->file, bytes - 1, "", 1, NULL);
    sqf_writer_close(writer);
    buf_free(&record);
    err_clear(&msg);
    return err;
}

typedef struct Seen {
    const SqfInfo *info;
    Arena arena;
    u64 rows, hash;
    bool is_index;
} Seen;

static inline Err
seen_entry(void *arg, i64 rowid, Slice payload)
{
    Seen *seen = arg;
    Cell cell[8];
    u32 count;
    arena_reset(&seen->arena);
    seen->rows++;
    seen->hash += hash_bytes(payload.p, payload.bytes, seen->is_index ? 0 : (u64)rowid);
    Err err = sqf_record_decode(payload, seen->info->encoding, &seen->arena, 8, cell, &count);
    return err == ERR_CORRUPT ? OK : err;
}

/* Read everything of a file; false: it could not even be opened. */
static inline Err
seen_file(Slice bytes, bool salvage, Seen *seen, u64 *findings_out)
{
    SqfOpen open = {.name = "memory", .database = sqf_source_memory(&bytes), .salvage = salvage};
    Sqf *sqf = NULL;
    ErrMsg msg = {0};
    SqfSchemaRow *row = NULL;
    u32 rows = 0;
    Arena arena;
    arena_init(&arena, NULL);
    Err err = sqf_open(&open, &sqf, &msg);
    if (err == OK) seen->info = sqf_info(sqf);
    if (err == OK) err = sqf_schema(sqf, &arena, &row, &rows, &msg);
    for (u32 i = 0; err == OK && i < rows; i++) {
        if (row[i].root == 0) continue;
        seen->is_index = strcmp(row[i].name, "w") == 0;
        err = seen->is_index ? sqf_scan_index(sqf, row[i].root, seen_entry, seen, &msg)
                             : sqf_scan_table(sqf, row[i].root, seen_entry, seen, &msg);
    }
    if (err == OK) err = sqf_check_free(sqf, &msg);
    if (findings_out != NULL) *findings_out = sqf != NULL ? sqf_findings(sqf) : 0;
    sqf_close(sqf);
    err_clear(&msg);
    arena_free(&arena);
    return err;
}
