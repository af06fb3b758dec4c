/*
 * keyset.c -- open addressing over key bytes; entries keep their order of arrival.
 */
#include "exec/keyset.h"

#define SLOTS_MIN 16u

/* Texts that a host collation calls equal share one number. */
struct HostClasses {
    const Collation *collation;
    Cell *text; /* One of each class, sorted by the collation. */
    u64 *number;
    u32 count, capacity;
};

Err
exec__keymaker_init(Exec *exec, KeyMaker *maker, const Collation *const *collation, u32 columns)
{
    *maker = (KeyMaker){.columns = columns};
    arena_init(&maker->arena, exec->account);
    maker->column = ARENA_NEW_ARRAY(&exec->arena, KeyColumn, MAX_OF(columns, 1u));
    maker->host = ARENA_NEW_ARRAY(&exec->arena, HostClasses *, MAX_OF(columns, 1u));
    if (maker->column == NULL || maker->host == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < columns; i++) {
        const Collation *used = collation != NULL ? collation[i] : NULL;
        maker->column[i].collation = used;
        if (used == NULL || used->kind != COLLATION_HOST) continue;
        maker->host[i] = ARENA_NEW(&exec->arena, HostClasses);
        if (maker->host[i] == NULL) return ERR_NOMEM;
        maker->host[i]->collation = used;
        maker->column[i].collation = NULL;
        maker->has_host = true;
    }
    return OK;
}

void
exec__keymaker_free(KeyMaker *maker)
{
    for (u32 i = 0; maker->has_host && i < maker->columns; i++) {
        if (maker->host[i] == NULL) continue;
        mem_free(maker->host[i]->text);
        mem_free(maker->host[i]->number);
    }
    buf_free(&maker->buf);
    arena_free(&maker->arena);
    *maker = (KeyMaker){0};
}

void
exec__keymaker_reset(KeyMaker *maker)
{
    if (!maker->has_host) return;
    for (u32 i = 0; i < maker->columns; i++) {
        if (maker->host[i] != NULL) maker->host[i]->count = 0;
    }
    arena_reset(&maker->arena);
}

static Err
classes_insert(HostClasses *classes, u32 place, const Cell *text, Arena *arena)
{
    if (classes->count == classes->capacity) {
        u32 capacity = MAX_OF(classes->capacity * 2, 16u);
        Cell *texts = mem_realloc(classes->text, capacity * sizeof(Cell));
        if (texts == NULL) return ERR_NOMEM;
        classes->text = texts;
        u64 *numbers = mem_realloc(classes->number, capacity * sizeof(u64));
        if (numbers == NULL) return ERR_NOMEM;
        classes->number = numbers;
        classes->capacity = capacity;
    }
    Cell copy;
    Err err = cell_copy(text, arena, &copy);
    if (err != OK) return err;
    u32 behind = classes->count - place;
    memmove(classes->text + place + 1, classes->text + place, behind * sizeof(Cell));
    memmove(classes->number + place + 1, classes->number + place, behind * sizeof(u64));
    classes->text[place] = copy;
    classes->number[place] = classes->count++;
    return OK;
}

/* The class of a text as a TEXT cell of eight bytes, so that it cannot equal a number. */
static Err
classes_number(HostClasses *classes, const Cell *text, Arena *arena, u64 *number_out)
{
    u32 low = 0, high = classes->count;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        int order = cell_compare(&classes->text[middle], text, classes->collation);
        if (order == 0) {
            *number_out = classes->number[middle];
            return OK;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *number_out = classes->count;
    return classes_insert(classes, low, text, arena);
}

Err
exec__key_make(KeyMaker *maker, const Cell *cells, Slice *key_out)
{
    buf_clear(&maker->buf);
    if (!maker->has_host) {
        Err err = key_append_cells(&maker->buf, cells, maker->column, maker->columns);
        *key_out = buf_slice(&maker->buf);
        return err;
    }
    for (u32 i = 0; i < maker->columns; i++) {
        Cell cell = cells[i];
        u8 bytes[8];
        if (maker->host[i] != NULL && cell.type == CELL_TEXT) {
            u64 number;
            Err err = classes_number(maker->host[i], &cell, &maker->arena, &number);
            if (err != OK) return err;
            store_be64(bytes, number);
            cell = cell_text(bytes, sizeof(bytes));
        }
        Err err = key_append_cell(&maker->buf, &cell, &maker->column[i]);
        if (err != OK) return err;
    }
    *key_out = buf_slice(&maker->buf);
    return OK;
}

void
exec__keyset_init(Exec *exec, KeySet *set)
{
    *set = (KeySet){.account = exec->account, .seed = exec->hash_seed};
    arena_init(&set->bytes, exec->account);
}

void
exec__keyset_free(KeySet *set)
{
    mem_free(set->entry);
    mem_free(set->slot);
    arena_free(&set->bytes);
    *set = (KeySet){0};
}

void
exec__keyset_clear(KeySet *set)
{
    set->count = 0;
    if (set->slot != NULL) memset(set->slot, 0, ((size_t)set->mask + 1) * sizeof(u32));
    arena_reset(&set->bytes);
}

void
exec__keyset_drop(KeySet *set)
{
    mem_free(set->entry);
    mem_free(set->slot);
    arena_free(&set->bytes);
    set->entry = NULL;
    set->slot = NULL;
    set->count = set->capacity = set->mask = 0;
}

u64
exec__keyset_memory(const KeySet *set)
{
    /* Of keys there are; the arrays have room for up to twice as many. */
    return arena_used(&set->bytes) + (u64)set->count * (sizeof(KeySetEntry) + 2 * sizeof(u32));
}

static u32
find_slot(const KeySet *set, Slice key, u32 hash, bool *found_out)
{
    u32 at = hash & set->mask;
    for (;;) {
        u32 number = set->slot[at];
        if (number == 0) break;
        const KeySetEntry *entry = &set->entry[number - 1];
        if (entry->hash == hash && entry->bytes == key.bytes &&
            memcmp(entry->p, key.p, key.bytes) == 0) {
            *found_out = true;
            return at;
        }
        at = (at + 1) & set->mask;
    }
    *found_out = false;
    return at;
}

static inline u32
key_hash(const KeySet *set, Slice key)
{
    u64 hash = hash_bytes(key.p, key.bytes, set->seed);
    return (u32)(hash ^ hash >> 32);
}

u32
exec__keyset_find(const KeySet *set, Slice key)
{
    if (set->count == 0) return KEYSET_NONE;
    bool found;
    u32 at = find_slot(set, key, key_hash(set, key), &found);
    return found ? set->slot[at] - 1 : KEYSET_NONE;
}

/* Enter all entries into the empty slots. */
static void
slots_fill(KeySet *set)
{
    for (u32 i = 0; i < set->count; i++) {
        u32 at = set->entry[i].hash & set->mask;
        while (set->slot[at] != 0) {
            at = (at + 1) & set->mask;
        }
        set->slot[at] = i + 1;
    }
}

/* Make room for one entry more at a load of at most one half. */
static Err
keyset_grow(KeySet *set)
{
    if (set->count < set->capacity) return OK;
    u32 capacity = set->capacity == 0 ? SLOTS_MIN / 2 : set->capacity * 2;
    u32 slots = capacity * 2;
    if (capacity > (u32)1 << 30) return ERR_NOMEM;
    KeySetEntry *entry = mem_realloc(set->entry, (size_t)capacity * sizeof(KeySetEntry));
    if (entry == NULL) return ERR_NOMEM;
    set->entry = entry;
    u32 *slot = mem_alloc_zeroed((size_t)slots * sizeof(u32));
    if (slot == NULL) return ERR_NOMEM;
    mem_free(set->slot);
    set->slot = slot;
    set->capacity = capacity;
    set->mask = slots - 1;
    slots_fill(set);
    return OK;
}

void
exec__keyset_truncate(KeySet *set, u32 count)
{
    ASSERT(count <= set->count);
    if (count == set->count) return;
    set->count = count;
    memset(set->slot, 0, ((size_t)set->mask + 1) * sizeof(u32));
    slots_fill(set);
}

Err
exec__keyset_add(KeySet *set, Slice key, u32 *number_out, bool *added_out)
{
    Err err = keyset_grow(set);
    if (err != OK) return err;
    u32 hash = key_hash(set, key);
    bool found;
    u32 at = find_slot(set, key, hash, &found);
    if (added_out != NULL) *added_out = !found;
    if (found) {
        *number_out = set->slot[at] - 1;
        return OK;
    }
    u8 *bytes = arena_bytes(&set->bytes, MAX_OF(key.bytes, (size_t)1));
    if (bytes == NULL) return ERR_NOMEM;
    memcpy(bytes, key.p, key.bytes);
    set->entry[set->count] = (KeySetEntry){.p = bytes, .bytes = (u32)key.bytes, .hash = hash};
    *number_out = set->count++;
    set->slot[at] = set->count;
    return OK;
}
