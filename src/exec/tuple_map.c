/*
 * tuple_map.c -- open addressing over hashes of values.
 */
#include "exec/tuple_map.h"

#include "value/collate.h"

#define SLOTS_MIN 256u
#define HASH_NULL 0x5bd1e995u

void
exec__tuples_init(Exec *exec, TupleMap *map, const Collation *const *collation, u32 columns)
{
    *map = (TupleMap){.columns = columns, .collation = collation, .seed = exec->hash_seed};
}

void
exec__tuples_clear(TupleMap *map)
{
    if (map->count > 0) memset(map->slot, 0, ((size_t)map->mask + 1) * sizeof(TupleSlot));
    map->count = 0;
}

void
exec__tuples_drop(TupleMap *map)
{
    mem_free(map->slot);
    map->slot = NULL;
    map->count = map->mask = 0;
}

void
exec__tuples_free(TupleMap *map)
{
    mem_free(map->slot);
    *map = (TupleMap){0};
}

static Err
map_grow(TupleMap *map)
{
    u32 slots = map->slot == NULL ? SLOTS_MIN : (map->mask + 1) * 2;
    TupleSlot *slot = mem_alloc_zeroed((size_t)slots * sizeof(TupleSlot));
    if (slot == NULL) return ERR_NOMEM;
    for (u32 i = 0; map->slot != NULL && i <= map->mask; i++) {
        if (map->slot[i].number == 0) continue;
        u32 at = map->slot[i].hash & (slots - 1);
        while (slot[at].number != 0) {
            at = (at + 1) & (slots - 1);
        }
        slot[at] = map->slot[i];
    }
    mem_free(map->slot);
    map->slot = slot;
    map->mask = slots - 1;
    return OK;
}

Err
exec__tuples_add(TupleMap *map, u32 hash, u32 number)
{
    if (map->slot == NULL || map->count > map->mask / 2) {
        Err err = map_grow(map);
        if (err != OK) return err;
    }
    u32 at = hash & map->mask;
    while (map->slot[at].number != 0) {
        at = (at + 1) & map->mask;
    }
    map->slot[at] = (TupleSlot){.hash = hash, .number = number + 1};
    map->count++;
    return OK;
}

static inline bool
hides_text(const TupleMap *map, u32 column)
{
    return map->collation != NULL && collation_hides_text(map->collation[column]);
}

bool
exec__tuple_is_plain(const TupleMap *map, const Cell *cell)
{
    for (u32 i = 0; i < map->columns; i++) {
        bool plain = cell[i].type == CELL_NULL || cell[i].type == CELL_INT ||
                     (cell[i].type == CELL_TEXT && !hides_text(map, i));
        if (!plain) return false;
    }
    return true;
}

static inline u32
mix(u32 hash, u64 value)
{
    u64 product = ((u64)hash ^ value) * 0x9E3779B97F4A7C15u;
    product ^= product >> 29;
    product *= 0xBF58476D1CE4E5B9u;
    return (u32)(product >> 32);
}

/* Mix one column into the hashes. */
static void
hash_column(const Batch *batch, const Vec *vec, bool hides, u64 seed, u32 *hash)
{
    if (vec->kind == VEC_INT && vec->null == NULL && !vec->constant) {
        const i64 *value = vec->u.i;
        for (u32 n = 0; n < batch->count; n++) {
            u32 at = batch_at(batch, n);
            hash[at] = mix(hash[at], (u64)value[at]);
        }
        return;
    }
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n);
        u32 place = vec->constant ? 0 : at;
        if (vec->kind == VEC_INT) {
            bool null = vec->null != NULL && vec->null[place];
            hash[at] = mix(hash[at], null ? HASH_NULL : (u64)vec->u.i[place]);
            continue;
        }
        Cell cell = vec_cell(vec, at);
        if (cell.type == CELL_INT) {
            hash[at] = mix(hash[at], (u64)cell.u.i);
        } else if (cell.type == CELL_TEXT && !hides) {
            hash[at] = mix(hash[at], hash_bytes(cell.u.p, cell.bytes, seed));
        } else {
            hash[at] = mix(hash[at], HASH_NULL);
        }
    }
}

void
exec__tuples_hash(const TupleMap *map, const Batch *batch, const Vec *vec, u32 *hash_out)
{
    for (u32 n = 0; n < batch->count; n++) {
        hash_out[batch_at(batch, n)] = 0;
    }
    for (u32 i = 0; i < map->columns; i++) {
        hash_column(batch, &vec[i], hides_text(map, i), map->seed, hash_out);
    }
}

/* Is the tuple plain and just that one? */
static inline bool
matches(const TupleMap *map, const Cell *have, const Vec *vec, u32 at)
{
    for (u32 i = 0; i < map->columns; i++) {
        if (vec[i].kind == VEC_INT && vec[i].null == NULL) {
            u32 place = vec[i].constant ? 0 : at;
            if (have[i].type != CELL_INT || have[i].u.i != vec[i].u.i[place]) return false;
            continue;
        }
        Cell cell = vec_cell(&vec[i], at);
        if (cell.type != have[i].type) return false;
        if (cell.type == CELL_INT && cell.u.i != have[i].u.i) return false;
        if (cell.type == CELL_REAL || cell.type == CELL_BLOB) return false;
        if (cell.type != CELL_TEXT) continue;
        if (hides_text(map, i) || cell.bytes != have[i].bytes) return false;
        if (memcmp(cell.u.p, have[i].u.p, cell.bytes) != 0) return false;
    }
    return true;
}

u32
exec__tuples_find(const TupleMap *map, const RowBuf *rows, const Vec *vec, u32 at, u32 hash)
{
    if (map->slot == NULL) return TUPLE_NONE;
    u32 place = hash & map->mask;
    while (map->slot[place].number != 0) {
        u32 number = map->slot[place].number - 1;
        if (map->slot[place].hash == hash &&
            matches(map, exec__rowbuf_row(rows, number), vec, at)) {
            return number;
        }
        place = (place + 1) & map->mask;
    }
    return TUPLE_NONE;
}

#define AHEAD 8u /* Rows between asking for a slot and looking at it. */

/* One integer column without NULLs. */
static void
find_ints(const TupleMap *map, const RowBuf *rows, const Batch *batch, const i64 *value,
          const u32 *hash, u32 *number_out)
{
    const TupleSlot *slot = map->slot;
    u32 mask = map->mask, columns = rows->columns;
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n), place = hash[at] & mask;
        if (n + AHEAD < batch->count) {
            __builtin_prefetch(&slot[hash[batch_at(batch, n + AHEAD)] & mask]);
        }
        while (slot[place].number != 0) {
            const Cell *have = rows->cell + (size_t)(slot[place].number - 1) * columns;
            if (slot[place].hash == hash[at] && have->type == CELL_INT && have->u.i == value[at]) {
                break;
            }
            place = (place + 1) & mask;
        }
        number_out[at] = slot[place].number - 1; /* 0 becomes TUPLE_NONE. */
    }
}

void
exec__tuples_find_all(const TupleMap *map, const RowBuf *rows, const Batch *batch, const Vec *vec,
                      const u32 *hash, u32 *number_out)
{
    if (map->slot != NULL && map->columns == 1 && vec->kind == VEC_INT && vec->null == NULL &&
        !vec->constant) {
        find_ints(map, rows, batch, vec->u.i, hash, number_out);
        return;
    }
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n);
        if (map->slot != NULL && n + AHEAD < batch->count) {
            __builtin_prefetch(&map->slot[hash[batch_at(batch, n + AHEAD)] & map->mask]);
        }
        number_out[at] = exec__tuples_find(map, rows, vec, at, hash[at]);
    }
}
