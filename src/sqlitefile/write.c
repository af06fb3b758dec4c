/*
 * write.c -- trees from their leaves up.
 *
 * Each level has one page under construction.  When a page is full it gets a number, is written,
 * and leaves a cell in the page above: its number and the key that divides it from what follows.
 * A page that closes gives up its last cell: of an index leaf the entry moves up as the divider, of
 * an inner page the child becomes the right-most pointer and the key moves up.  So no inner page
 * is without a cell.
 */
#include "sqlitefile/write.h"

#define LEVELS_MAX      40u
#define OUT_BYTES       ((size_t)256 << 10)
#define CELL_HEAD_BYTES (4 + 2 * SQF_VARINT_BYTES)
#define LIBRARY_VERSION 3054001u /* What the format is like; readers only show it. */
#define PAGE_NO_MAX     ((u32)0xfffffffe)

typedef struct Level {
    u8 *page; /* Cells lie at the end, pointers behind `head`. */
    u32 kind, cells, content;
} Level;

struct SqfWriter {
    SqfTarget target;
    SqfCreate create;
    u32 page_bytes, usable, trees, pages, largest_root;
    u32 *root;
    Level level[LEVELS_MAX];
    u32 levels; /* Of the tree at hand; 0: none is open. */
    bool is_index, has_row;
    u32 tree;
    i64 last_rowid;
    Buf cell;      /* The one that is being added. */
    u8 *overflow;  /* A page. */
    u8 *out;       /* Pages that follow each other, not yet written. */
    u32 out_first; /* Number of the first. */
    size_t out_bytes;
    u64 written;
    u8 *map; /* SQF_PTRMAP_BYTES a page, by number; NULL without page maps. */
    u32 map_capacity;
    u8 *first; /* Page 1, written last. */
    bool schema_done;
};

/* ---- pages ---- */

static Err
out_flush(SqfWriter *writer, ErrMsg *msg)
{
    if (writer->out_bytes == 0) return OK;
    u64 offset = (u64)(writer->out_first - 1) * writer->page_bytes;
    Err err = writer->target.write(writer->target.arg, offset, writer->out, writer->out_bytes, msg);
    writer->out_bytes = 0;
    return err;
}

static Err
page_write(SqfWriter *writer, u32 page, const u8 *bytes, ErrMsg *msg)
{
    writer->written += writer->page_bytes;
    bool follows = page == writer->out_first + writer->out_bytes / writer->page_bytes;
    if (!follows || writer->out_bytes + writer->page_bytes > OUT_BYTES) {
        Err err = out_flush(writer, msg);
        if (err != OK) return err;
        writer->out_first = page;
    }
    memcpy(writer->out + writer->out_bytes, bytes, writer->page_bytes);
    writer->out_bytes += writer->page_bytes;
    return OK;
}

static bool
is_set_apart(const SqfWriter *writer, u32 page)
{
    return page == sqf_pending_page(writer->page_bytes) ||
           (writer->create.vacuum != SQF_VACUUM_NONE &&
            page == sqf_ptrmap_page(writer->page_bytes, writer->usable, page));
}

/* The next page number. */
static Err
page_new(SqfWriter *writer, u32 *page_out, ErrMsg *msg)
{
    do {
        if (writer->pages >= PAGE_NO_MAX) {
            return err_set(msg, ERR_FULL,
                           "the file would have more pages than can be numbered; "
                           "choose larger pages");
        }
        writer->pages++;
    } while (is_set_apart(writer, writer->pages));
    *page_out = writer->pages;
    if (writer->create.vacuum == SQF_VACUUM_NONE || writer->pages < writer->map_capacity) return OK;
    u32 capacity = writer->map_capacity * 2 + 1024;
    u8 *bigger = mem_realloc(writer->map, (size_t)capacity * SQF_PTRMAP_BYTES);
    if (bigger == NULL) return err_set(msg, ERR_NOMEM, NULL);
    memset(bigger + (size_t)writer->map_capacity * SQF_PTRMAP_BYTES, 0,
           (size_t)(capacity - writer->map_capacity) * SQF_PTRMAP_BYTES);
    writer->map = bigger;
    writer->map_capacity = capacity;
    return OK;
}

static void
map_set(SqfWriter *writer, u32 page, SqfPageUse use, u32 parent)
{
    if (writer->map == NULL) return;
    u8 *entry = writer->map + (size_t)page * SQF_PTRMAP_BYTES;
    entry[0] = (u8)use;
    store_be32(entry + 1, parent);
}

/* ---- levels ---- */

static u32
level_head(const Level *level)
{
    return sqf_page_head_bytes(level->kind);
}

static Err
level_start(SqfWriter *writer, u32 at, ErrMsg *msg)
{
    Level *level = &writer->level[at];
    if (level->page == NULL) level->page = mem_alloc(writer->page_bytes);
    if (level->page == NULL) return err_set(msg, ERR_NOMEM, NULL);
    memset(level->page, 0, writer->page_bytes);
    level->kind = at == 0 ? (writer->is_index ? SQF_INDEX_LEAF : SQF_TABLE_LEAF)
                          : (writer->is_index ? SQF_INDEX_INTERIOR : SQF_TABLE_INTERIOR);
    level->cells = 0;
    level->content = writer->usable;
    return OK;
}

/* Put a cell at the end; false: it does not fit. */
static bool
level_add(Level *level, const u8 *cell, u32 bytes)
{
    u32 room = MAX_OF(bytes, SQF_CELL_BYTES_MIN);
    u32 pointers = level_head(level) + 2 * level->cells;
    if (pointers + 2 + room > level->content) return false;
    level->content -= room;
    memcpy(level->page + level->content, cell, bytes);
    sqf_put_be16(level->page + level_head(level) + 2 * level->cells, level->content);
    level->cells++;
    return true;
}

static u32
level_offset(const Level *level, u32 at)
{
    return sqf_be16(level->page + level_head(level) + 2 * at);
}

/* Length of the cell at `p`; *overflow_out: its first overflow page, or 0. */
static u32
cell_length(const SqfWriter *writer, const Level *level, const u8 *p, u32 *overflow_out)
{
    const u8 *start = p, *end = level->page + writer->usable;
    u64 v;
    *overflow_out = 0;
    if (sqf_is_interior(level->kind)) p += 4;
    if (level->kind == SQF_TABLE_INTERIOR) return (u32)(p - start) + sqf_varint_get(p, end, &v);
    u64 payload = 0;
    p += sqf_varint_get(p, end, &payload);
    if (level->kind == SQF_TABLE_LEAF) p += sqf_varint_get(p, end, &v);
    u32 local = sqf_local_bytes(writer->usable, sqf_is_index(level->kind), payload);
    p += local;
    if (local < payload) {
        *overflow_out = load_be32(p);
        p += 4;
    }
    return (u32)(p - start);
}

/* Take the last cell off again; its bytes go to `cell`. */
static Err
level_pop(const SqfWriter *writer, Level *level, Buf *cell)
{
    ASSERT(level->cells > 1);
    u32 overflow;
    const u8 *p = level->page + level->content;
    u32 bytes = cell_length(writer, level, p, &overflow);
    buf_clear(cell);
    Err err = buf_append(cell, p, bytes);
    if (err != OK) return err;
    memset(level->page + level->content, 0, bytes);
    level->content += MAX_OF(bytes, SQF_CELL_BYTES_MIN);
    level->cells--;
    sqf_put_be16(level->page + level_head(level) + 2 * level->cells, 0);
    return OK;
}

/* What the page points at learns who its parent is. */
static void
level_own(SqfWriter *writer, const Level *level, u32 page)
{
    if (writer->map == NULL) return;
    for (u32 i = 0; i < level->cells; i++) {
        u32 overflow;
        const u8 *p = level->page + level_offset(level, i);
        cell_length(writer, level, p, &overflow);
        if (sqf_is_interior(level->kind)) map_set(writer, load_be32(p), SQF_USE_BTREE, page);
        if (overflow != 0) map_set(writer, overflow, SQF_USE_OVERFLOW_FIRST, page);
    }
    if (sqf_is_interior(level->kind))
        map_set(writer, load_be32(level->page + 8), SQF_USE_BTREE, page);
}

static void
level_head_fill(const Level *level, u8 *head)
{
    head[0] = (u8)level->kind;
    sqf_put_be16(head + 3, level->cells);
    sqf_put_be16(head + 5, level->content & 0xffff); /* 65536 is written as 0. */
}

static Err
level_write(SqfWriter *writer, Level *level, u32 page, ErrMsg *msg)
{
    level_head_fill(level, level->page);
    level_own(writer, level, page);
    return page_write(writer, page, level->page, msg);
}

/*
 * Close the full page at level `at`, and put its number with the divider into the level above, and
 * so on as far as pages are full.  `divider` is the cell of the page above without its child; it is
 * overwritten.
 */
static Err
level_close(SqfWriter *writer, u32 at, Buf *divider, ErrMsg *msg)
{
    Buf popped = {0}, cell = {0};
    Err err = OK;
    for (;; at++) {
        u32 page;
        u8 child[4];
        err = page_new(writer, &page, msg);
        if (err == OK) err = level_write(writer, &writer->level[at], page, msg);
        if (err == OK) err = level_start(writer, at, msg);
        /* What did not fit goes first into the new page. */
        if (err == OK && cell.bytes > 0) {
            bool fits = level_add(&writer->level[at], cell.p, (u32)cell.bytes);
            ASSERT(fits);
        }
        if (err == OK && at + 1 == LEVELS_MAX) err = err_set(msg, ERR_FULL, "the tree is too deep");
        if (err == OK && at + 1 == writer->levels) {
            writer->levels++;
            err = level_start(writer, at + 1, msg);
        }
        if (err != OK) break;
        store_be32(child, page);
        buf_clear(&cell);
        err = buf_append(&cell, child, 4);
        if (err == OK) err = buf_append(&cell, divider->p, divider->bytes);
        Level *above = &writer->level[at + 1];
        if (err != OK || level_add(above, cell.p, (u32)cell.bytes)) break;
        /* The page above is full too: its last child becomes the right-most one. */
        err = level_pop(writer, above, &popped);
        if (err != OK) break;
        memcpy(above->page + 8, popped.p, 4);
        buf_clear(divider);
        err = buf_append(divider, popped.p + 4, popped.bytes - 4);
        if (err != OK) break;
    }
    buf_free(&popped);
    buf_free(&cell);
    return err != OK && msg->err == OK ? err_set(msg, err, NULL) : err;
}

/* ---- cells ---- */

/* Write what does not fit on the b-tree page into a chain of pages. */
static Err
overflow_write(SqfWriter *writer, Slice rest, u32 *first_out, ErrMsg *msg)
{
    u32 page, next = 0, before = 0, room = writer->usable - 4;
    Err err = page_new(writer, &page, msg);
    *first_out = page;
    while (err == OK) {
        size_t part = MIN_OF(rest.bytes, (size_t)room);
        next = 0;
        if (rest.bytes > part) err = page_new(writer, &next, msg);
        if (err != OK) break;
        memset(writer->overflow, 0, writer->page_bytes);
        store_be32(writer->overflow, next);
        memcpy(writer->overflow + 4, rest.p, part);
        if (before != 0) map_set(writer, page, SQF_USE_OVERFLOW_NEXT, before);
        err = page_write(writer, page, writer->overflow, msg);
        rest = (Slice){rest.p + part, rest.bytes - part};
        before = page;
        page = next;
        if (next == 0) break;
    }
    return err;
}

static Err
leaf_add(SqfWriter *writer, i64 rowid, Slice payload, ErrMsg *msg)
{
    u8 head[CELL_HEAD_BYTES], tail[4];
    u32 used = sqf_varint_put(head, payload.bytes), first;
    if (!writer->is_index) used += sqf_varint_put(head + used, (u64)rowid);
    u32 local = sqf_local_bytes(writer->usable, writer->is_index, payload.bytes);
    Buf *cell = &writer->cell;
    buf_clear(cell);
    Err err = buf_append(cell, head, used);
    if (err == OK) err = buf_append(cell, payload.p, local);
    if (err == OK && local < payload.bytes) {
        Slice rest = {payload.p + local, payload.bytes - local};
        err = overflow_write(writer, rest, &first, msg);
        if (err != OK) return err;
        store_be32(tail, first);
        err = buf_append(cell, tail, 4);
    }
    if (err != OK) return err_set(msg, err, NULL);
    Level *leaf = &writer->level[0];
    if (level_add(leaf, cell->p, (u32)cell->bytes)) return OK;

    Buf divider = {0};
    if (writer->is_index) {
        err = level_pop(writer, leaf, &divider);
    } else {
        u8 key[SQF_VARINT_BYTES];
        err = buf_append(&divider, key, sqf_varint_put(key, (u64)writer->last_rowid));
    }
    err = err == OK ? level_close(writer, 0, &divider, msg) : err_set(msg, err, NULL);
    buf_free(&divider);
    if (err != OK) return err;
    bool fits = level_add(leaf, cell->p, (u32)cell->bytes);
    ASSERT(fits);
    return OK;
}

/* ---- trees ---- */

Err
sqf_tree_begin(SqfWriter *writer, u32 at, bool is_index, ErrMsg *msg)
{
    ASSERT(writer->levels == 0 && (at < writer->trees || at == SQF_TREE_SCHEMA));
    writer->tree = at;
    writer->is_index = is_index;
    writer->has_row = false;
    writer->levels = 1;
    return level_start(writer, 0, msg);
}

Err
sqf_tree_row(SqfWriter *writer, i64 rowid, Slice payload, ErrMsg *msg)
{
    ASSERT(writer->levels > 0 && !writer->is_index);
    if (writer->has_row && rowid <= writer->last_rowid)
        return err_set(msg, ERR_MISUSE, "rowid %lld is out of order", (long long)rowid);
    Err err = leaf_add(writer, rowid, payload, msg);
    writer->last_rowid = rowid;
    writer->has_row = true;
    return err;
}

Err
sqf_tree_entry(SqfWriter *writer, Slice payload, ErrMsg *msg)
{
    ASSERT(writer->levels > 0 && writer->is_index);
    return leaf_add(writer, 0, payload, msg);
}

/* The root of the schema shares page 1 with the file header: its head and pointers move. */
static void
first_page(SqfWriter *writer, const Level *level)
{
    u32 pointers = level_head(level) + 2 * level->cells;
    memcpy(writer->first, level->page, writer->page_bytes);
    memmove(writer->first + SQF_HEADER_BYTES, writer->first, pointers);
    memset(writer->first, 0, SQF_HEADER_BYTES);
}

/* A page that has no room for the file header gets an inner page without cells above it: of page 1
   the format allows that. */
static Err
schema_deepen(SqfWriter *writer, ErrMsg *msg)
{
    const Level *top = &writer->level[writer->levels - 1];
    u32 pointers = level_head(top) + 2 * top->cells;
    if (pointers + SQF_HEADER_BYTES <= top->content) return OK;
    if (writer->levels == LEVELS_MAX) return err_set(msg, ERR_FULL, "the tree is too deep");
    writer->levels++;
    return level_start(writer, writer->levels - 1, msg);
}

Err
sqf_tree_end(SqfWriter *writer, ErrMsg *msg)
{
    Err err = OK;
    ASSERT(writer->levels > 0);
    if (writer->tree == SQF_TREE_SCHEMA) err = schema_deepen(writer, msg);
    for (u32 at = 0; err == OK && at + 1 < writer->levels; at++) {
        u32 page;
        err = page_new(writer, &page, msg);
        if (err == OK) err = level_write(writer, &writer->level[at], page, msg);
        if (err == OK) store_be32(writer->level[at + 1].page + 8, page);
    }
    if (err != OK) return err;
    Level *top = &writer->level[writer->levels - 1];
    writer->levels = 0;
    if (writer->tree != SQF_TREE_SCHEMA) {
        u32 root = writer->root[writer->tree];
        map_set(writer, root, SQF_USE_ROOT, 0);
        return level_write(writer, top, root, msg);
    }
    level_head_fill(top, top->page);
    level_own(writer, top, SQF_SCHEMA_ROOT);
    first_page(writer, top);
    writer->schema_done = true;
    return OK;
}

/* ---- the file ---- */

Err
sqf_writer_open(const SqfCreate *create, const SqfTarget *target, u32 trees, SqfWriter **writer_out,
                ErrMsg *msg)
{
    *writer_out = NULL;
    u32 page_bytes = create->page_bytes != 0 ? create->page_bytes : 4096;
    bool sound = page_bytes >= SQF_PAGE_BYTES_MIN && page_bytes <= SQF_PAGE_BYTES_MAX &&
                 (page_bytes & (page_bytes - 1)) == 0 && create->reserved_bytes <= 255 &&
                 page_bytes - create->reserved_bytes >= SQF_USABLE_MIN &&
                 create->encoding <= SQF_UTF16BE;
    if (!sound) return err_set(msg, ERR_MISUSE, "no SQLite file has such pages or such text");
    SqfWriter *writer = MEM_NEW(SqfWriter);
    if (writer == NULL) return err_set(msg, ERR_NOMEM, NULL);
    writer->target = *target;
    writer->create = *create;
    if (create->encoding == 0) writer->create.encoding = SQF_UTF8;
    writer->page_bytes = page_bytes;
    writer->usable = page_bytes - create->reserved_bytes;
    writer->trees = trees;
    writer->pages = 1;
    writer->root = MEM_NEW_ARRAY(u32, (size_t)trees + 1);
    writer->overflow = mem_alloc(page_bytes);
    writer->out = mem_alloc(OUT_BYTES);
    writer->first = mem_alloc_zeroed(page_bytes);
    bool good = writer->root != NULL && writer->overflow != NULL && writer->out != NULL &&
                writer->first != NULL;
    Err err = good ? OK : err_set(msg, ERR_NOMEM, NULL);
    for (u32 i = 0; err == OK && i < trees; i++)
        err = page_new(writer, &writer->root[i], msg);
    writer->largest_root = writer->pages;
    if (err != OK) {
        sqf_writer_close(writer);
        return err;
    }
    *writer_out = writer;
    return OK;
}

void
sqf_writer_close(SqfWriter *writer)
{
    if (writer == NULL) return;
    for (u32 i = 0; i < LEVELS_MAX; i++)
        mem_free(writer->level[i].page);
    buf_free(&writer->cell);
    mem_free(writer->root);
    mem_free(writer->overflow);
    mem_free(writer->out);
    mem_free(writer->first);
    mem_free(writer->map);
    mem_free(writer);
}

u32
sqf_writer_root(const SqfWriter *writer, u32 at)
{
    ASSERT(at < writer->trees);
    return writer->root[at];
}

u64
sqf_writer_bytes(const SqfWriter *writer)
{
    return writer->written;
}

/* All page-map pages. */
static Err
maps_write(SqfWriter *writer, ErrMsg *msg)
{
    Err err = OK;
    u32 map_page = 0, page = 2;
    if (writer->create.vacuum == SQF_VACUUM_NONE) return OK;
    for (; err == OK && page <= writer->pages; page++) {
        u32 of = sqf_ptrmap_page(writer->page_bytes, writer->usable, page);
        if (of != map_page) {
            if (map_page != 0) err = page_write(writer, map_page, writer->overflow, msg);
            memset(writer->overflow, 0, writer->page_bytes);
            map_page = of;
        }
        if (is_set_apart(writer, page)) continue;
        u32 entry = (page - of - 1) * SQF_PTRMAP_BYTES;
        memcpy(writer->overflow + entry, writer->map + (size_t)page * SQF_PTRMAP_BYTES,
               SQF_PTRMAP_BYTES);
    }
    if (err == OK && map_page != 0) err = page_write(writer, map_page, writer->overflow, msg);
    return err;
}

static void
header_fill(const SqfWriter *writer)
{
    const SqfCreate *create = &writer->create;
    u8 *p = writer->first;
    bool maps = create->vacuum != SQF_VACUUM_NONE;
    memcpy(p, SQF_MAGIC, SQF_MAGIC_BYTES);
    sqf_put_be16(p + SQF_AT_PAGE_BYTES,
                 writer->page_bytes == SQF_PAGE_BYTES_MAX ? 1 : writer->page_bytes);
    p[SQF_AT_WRITE_VERSION] = p[SQF_AT_READ_VERSION] = create->wal ? 2 : 1;
    p[SQF_AT_RESERVED] = (u8)create->reserved_bytes;
    p[SQF_AT_FRACTIONS] = 64;
    p[SQF_AT_FRACTIONS + 1] = p[SQF_AT_FRACTIONS + 2] = 32;
    store_be32(p + SQF_AT_CHANGE_COUNTER, 1);
    store_be32(p + SQF_AT_PAGES, writer->pages);
    store_be32(p + SQF_AT_SCHEMA_COOKIE, create->schema_cookie);
    store_be32(p + SQF_AT_SCHEMA_FORMAT, 4);
    store_be32(p + SQF_AT_CACHE_SIZE, (u32)create->cache_size);
    store_be32(p + SQF_AT_LARGEST_ROOT, maps ? writer->largest_root : 0);
    store_be32(p + SQF_AT_ENCODING, create->encoding);
    store_be32(p + SQF_AT_USER_VERSION, (u32)create->user_version);
    store_be32(p + SQF_AT_INCREMENTAL, create->vacuum == SQF_VACUUM_INCREMENTAL);
    store_be32(p + SQF_AT_APPLICATION_ID, (u32)create->application_id);
    store_be32(p + SQF_AT_VALID_FOR, 1);
    store_be32(p + SQF_AT_LIBRARY_VERSION, LIBRARY_VERSION);
}

Err
sqf_writer_finish(SqfWriter *writer, u64 *bytes_out, ErrMsg *msg)
{
    ASSERT(writer->levels == 0 && writer->schema_done);
    Err err = maps_write(writer, msg);
    header_fill(writer);
    if (err == OK) err = page_write(writer, 1, writer->first, msg);
    if (err == OK) err = out_flush(writer, msg);
    *bytes_out = (u64)writer->pages * writer->page_bytes;
    return err;
}
