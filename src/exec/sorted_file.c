/*
 * sorted_file.c -- look-ups in sorted records, and sets of keys in levels.
 *
 * A record is the length of its key, the key, the row.
 *
 * A set is a KeySet in memory and files, each of which was one KeySet or several of them: as soon
 * as SET_MERGE files of one level stand at the end they become one of the next, so that a key is
 * looked for in few files and written few times.
 */
#include "exec/sorted_file.h"

#include "exec/exec__write.h"
#include "exec/order.h"

#define BLOOM_BITS   10u /* A record. */
#define BLOOM_HASHES 4u
#define SET_MERGE    8u

/* ---- the filter ---- */

static inline u64
bloom_bit(const SortedFile *file, u64 hash, u32 n)
{
    u64 step = hash >> 32 | 1;
    return (hash + n * step) % (file->bloom_words * 64);
}

static void
bloom_add(SortedFile *file, Slice key)
{
    u64 hash = hash_bytes(key.p, key.bytes, file->seed);
    for (u32 n = 0; n < BLOOM_HASHES; n++) {
        u64 bit = bloom_bit(file, hash, n);
        file->bloom[bit / 64] |= (u64)1 << bit % 64;
    }
}

static bool
bloom_may_have(const SortedFile *file, Slice key)
{
    u64 hash = hash_bytes(key.p, key.bytes, file->seed);
    for (u32 n = 0; n < BLOOM_HASHES; n++) {
        u64 bit = bloom_bit(file, hash, n);
        if ((file->bloom[bit / 64] >> bit % 64 & 1) == 0) return false;
    }
    return true;
}

/* ---- writing ---- */

Err
exec__file_begin(Exec *exec, SortedFile *file, u64 records)
{
    *file = (SortedFile){.seed = exec->hash_seed};
    arena_init(&file->bytes, exec->account);
    file->writer.run = &file->run;
    file->bloom_words = records * BLOOM_BITS / 64 + 1;
    file->bloom = ARENA_NEW_ARRAY(&file->bytes, u64, file->bloom_words);
    return file->bloom != NULL ? OK : ERR_NOMEM;
}

/* The record just written was the first of its block. */
static Err
fence_add(SortedFile *file, Slice key)
{
    u32 block = file->run.blocks;
    if (block >= file->fence_capacity) {
        u32 capacity = MAX_OF(file->fence_capacity * 2, 16u);
        Slice *bigger = mem_realloc(file->fence, capacity * sizeof(Slice));
        if (bigger == NULL) return ERR_NOMEM;
        file->fence = bigger;
        file->fence_capacity = capacity;
    }
    u8 *copy = arena_bytes(&file->bytes, MAX_OF(key.bytes, (size_t)1));
    if (copy == NULL) return ERR_NOMEM;
    if (key.bytes > 0) memcpy(copy, key.p, key.bytes);
    file->fence[block] = (Slice){copy, key.bytes};
    return OK;
}

Err
exec__file_put(Exec *exec, SortedFile *file, Slice key, Slice row)
{
    u8 length[4];
    store_u32(length, (u32)key.bytes);
    buf_clear(&file->head);
    Err err = buf_append(&file->head, length, sizeof(length));
    if (err == OK) err = buf_append(&file->head, key.p, key.bytes);
    if (err == OK) err = exec__run_add(exec, &file->writer, buf_slice(&file->head), row);
    if (err == OK && file->writer.records == 1) err = fence_add(file, key);
    if (err == OK) bloom_add(file, key);
    return err;
}

Err
exec__file_end(Exec *exec, SortedFile *file)
{
    Err err = exec__run_flush(exec, &file->writer);
    exec__writer_free(exec, &file->writer);
    return err;
}

void
exec__file_free(Exec *exec, SortedFile *file)
{
    exec__writer_free(exec, &file->writer);
    exec__reader_free(exec, &file->reader);
    exec__run_free(exec, &file->run);
    arena_free(&file->bytes);
    mem_free(file->fence);
    buf_free(&file->head);
    *file = (SortedFile){0};
}

/* ---- reading ---- */

static void
record_parts(Slice record, Slice *key_out, Slice *row_out)
{
    u32 bytes = load_u32(record.p);
    ASSERT(bytes <= record.bytes - 4);
    *key_out = (Slice){record.p + 4, bytes};
    *row_out = (Slice){record.p + 4 + bytes, record.bytes - 4 - bytes};
}

/* The block in which the first record not before `key` stands, or which ends before it. */
static u32
block_of(const SortedFile *file, Slice key)
{
    u32 low = 0, high = file->run.blocks;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (slice_compare(file->fence[middle], key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? low - 1 : 0;
}

Err
exec__file_seek(Exec *exec, SortedFile *file, Slice key, bool *found_out)
{
    *found_out = false;
    file->wanted = SLICE_NONE;
    if (file->run.blocks == 0 || !bloom_may_have(file, key)) return OK;
    u32 block = block_of(file, key);
    if (file->at_block == block + 1) {
        exec__reader_again(&file->reader);
    } else {
        exec__reader_start(&file->reader, &file->run, block);
    }
    for (;;) {
        Slice record, have, row;
        bool found;
        Err err = exec__reader_next(exec, &file->reader, &record, &found);
        file->at_block = err == OK ? file->reader.next : 0;
        if (err != OK || !found) return err;
        record_parts(record, &have, &row);
        int order = slice_compare(have, key);
        if (order < 0) continue;
        *found_out = order == 0;
        if (order == 0) exec__reader_back(&file->reader, record);
        file->wanted = key;
        return OK;
    }
}

Err
exec__file_row(Exec *exec, SortedFile *file, Slice *row_out, bool *found_out)
{
    Slice record, have;
    Err err = exec__reader_next(exec, &file->reader, &record, found_out);
    file->at_block = err == OK ? file->reader.next : 0;
    if (err != OK || !*found_out) return err;
    record_parts(record, &have, row_out);
    *found_out = slice_equal(have, file->wanted);
    return OK;
}

void
exec__file_rewind(SortedFile *file)
{
    exec__reader_start(&file->reader, &file->run, 0);
    file->at_block = 0;
}

Err
exec__file_next(Exec *exec, SortedFile *file, Slice *key_out, bool *found_out)
{
    Slice record, row;
    Err err = exec__reader_next(exec, &file->reader, &record, found_out);
    if (err == OK && *found_out) record_parts(record, key_out, &row);
    return err;
}

/* ---- sets ---- */

void
exec__set_clear(Exec *exec, SpillSet *set)
{
    for (u32 i = 0; i < set->files; i++) {
        exec__file_free(exec, &set->file[i]);
    }
    set->files = 0;
    if (set->held > 0) exec__spill_forget(exec, &set->held);
}

void
exec__set_free(Exec *exec, SpillSet *set)
{
    exec__set_clear(exec, set);
    mem_free(set->file);
    mem_free(set->level);
    *set = (SpillSet){0};
}

/* Readers and writers point into the files, but only while one of them is in use. */
static Err
set_grow(SpillSet *set)
{
    if (set->files < set->capacity) return OK;
    u32 capacity = MAX_OF(set->capacity * 2, 16u);
    SortedFile *file = mem_realloc(set->file, capacity * sizeof(SortedFile));
    if (file == NULL) return ERR_NOMEM;
    set->file = file;
    for (u32 i = 0; i < set->files; i++) {
        file[i].reader.run = &file[i].run;
    }
    u8 *level = mem_realloc(set->level, capacity);
    if (level == NULL) return ERR_NOMEM;
    set->level = level;
    set->capacity = capacity;
    return OK;
}

/* Put the keys of the last SET_MERGE files, which are all different, in order into `to`. */
static Err
files_merge(Exec *exec, SortedFile *from, SortedFile *to)
{
    Slice key[SET_MERGE];
    bool found[SET_MERGE];
    Err err = OK;
    for (u32 i = 0; err == OK && i < SET_MERGE; i++) {
        exec__file_rewind(&from[i]);
        err = exec__file_next(exec, &from[i], &key[i], &found[i]);
    }
    while (err == OK) {
        u32 least = SET_MERGE;
        for (u32 i = 0; i < SET_MERGE; i++) {
            if (!found[i]) continue;
            if (least == SET_MERGE || slice_compare(key[i], key[least]) < 0) least = i;
        }
        if (least == SET_MERGE) break;
        err = exec__file_put(exec, to, key[least], SLICE_NONE);
        if (err == OK) err = exec__file_next(exec, &from[least], &key[least], &found[least]);
    }
    return err == OK ? exec__file_end(exec, to) : err;
}

static Err
levels_merge(Exec *exec, SpillSet *set)
{
    for (;;) {
        if (set->files < SET_MERGE) return OK;
        u32 first = set->files - SET_MERGE;
        u64 records = 0;
        for (u32 i = first; i < set->files; i++) {
            if (set->level[i] != set->level[first]) return OK;
            records += set->file[i].run.records;
        }
        REACHED("exec: files of a set were merged");
        SortedFile merged;
        Err err = exec__file_begin(exec, &merged, records);
        if (err == OK) err = files_merge(exec, &set->file[first], &merged);
        if (err != OK) {
            exec__file_free(exec, &merged);
            return err;
        }
        for (u32 i = first; i < set->files; i++) {
            exec__file_free(exec, &set->file[i]);
        }
        set->file[first] = merged;
        set->file[first].reader.run = NULL;
        set->level[first]++;
        set->files = first + 1;
    }
}

Err
exec__set_flush(Exec *exec, SpillSet *set, KeySet *keys)
{
    if (keys->count == 0) return OK;
    Err err = set_grow(set);
    u32 *order = mem_alloc((size_t)keys->count * sizeof(u32));
    if (order == NULL) err = ERR_NOMEM;
    for (u32 i = 0; err == OK && i < keys->count; i++) {
        order[i] = i;
    }
    if (err == OK) err = exec__keys_sort(keys->entry, order, keys->count);
    if (err == OK) {
        SortedFile *file = &set->file[set->files];
        set->level[set->files++] = 0; /* Clearing frees it, whatever happens. */
        err = exec__file_begin(exec, file, keys->count);
        for (u32 i = 0; err == OK && i < keys->count; i++) {
            err = exec__file_put(exec, file, exec__keyset_key(keys, order[i]), SLICE_NONE);
        }
        if (err == OK) err = exec__file_end(exec, file);
    }
    mem_free(order);
    if (err != OK) return err;
    exec__keyset_drop(keys);
    exec__spill_forget(exec, &set->held);
    return levels_merge(exec, set);
}

Err
exec__set_has(Exec *exec, SpillSet *set, Slice key, bool *found_out)
{
    *found_out = false;
    for (u32 i = set->files; i > 0 && !*found_out; i--) {
        Err err = exec__file_seek(exec, &set->file[i - 1], key, found_out);
        if (err != OK) return err;
    }
    return OK;
}

Err
exec__set_add_slow(Exec *exec, SpillSet *set, KeySet *keys, Slice key, u32 *number_out,
                   bool *added_out)
{
    *added_out = false;
    *number_out = exec__keyset_find(keys, key);
    if (*number_out != KEYSET_NONE) return OK;
    bool found;
    Err err = exec__set_has(exec, set, key, &found);
    if (err != OK || found) return err;
    return exec__keyset_add(keys, key, number_out, added_out);
}
