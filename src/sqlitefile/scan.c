/*
 * scan.c -- walking b-trees in key order, with every bound checked.
 *
 * The way down is a stack of pages, each in a buffer of its own, so that a cell stays where it is
 * while pages below it are read.  A page that has been met before is damage, so damaged pointers
 * cannot make a walk endless.
 */
#include "sqlitefile/read__impl.h"

#define SQF_PAYLOAD_MAX ((u64)2147483647)

typedef struct Level {
    const u8 *bytes;
    u32 page, kind, head, cells, next; /* `next`: cell to visit; == cells: the right child. */
    bool below_done;                   /* The child left of `next` has been visited. */
} Level;

typedef struct Walk {
    Sqf *sqf;
    bool is_index;
    SqfEntry each;
    void *arg;
    ErrMsg *msg;
    u32 depth;
    i64 last_rowid;
    bool has_row;
    Level level[SQF_DEPTH_MAX];
} Walk;

typedef struct CellAt {
    u32 child; /* Interior pages. */
    i64 rowid; /* Table pages. */
    u64 payload_bytes;
    const u8 *local;
    u32 local_bytes, overflow; /* First overflow page, 0: none. */
} CellAt;

/* Mark a page as met; false: it was met before, or cannot be. */
static bool
page_take(Sqf *sqf, u32 page)
{
    if (page == 0 || page > sqf->info.pages) return false;
    u64 *word = &sqf->used[page / 64], bit = (u64)1 << (page % 64);
    if ((*word & bit) != 0) return false;
    *word |= bit;
    return true;
}

/* ---- cells ---- */

static bool
cell_parse(const Sqf *sqf, const Level *level, u32 at, CellAt *cell_out)
{
    u32 usable = sqf->info.usable_bytes;
    const u8 *page = level->bytes, *end = page + usable;
    u32 pointers = level->head + sqf_page_head_bytes(level->kind);
    u32 offset = sqf_be16(page + pointers + 2 * at);
    const u8 *p = page + offset;
    *cell_out = (CellAt){0};
    if (offset < pointers + 2 * level->cells || offset > usable - SQF_CELL_BYTES_MIN) return false;
    if (sqf_is_interior(level->kind)) {
        cell_out->child = load_be32(p);
        p += 4;
    }
    u64 v;
    if (level->kind != SQF_TABLE_INTERIOR) {
        u32 used = sqf_varint_get(p, end, &cell_out->payload_bytes);
        if (used == 0 || cell_out->payload_bytes > SQF_PAYLOAD_MAX) return false;
        p += used;
    }
    if (!sqf_is_index(level->kind)) {
        u32 used = sqf_varint_get(p, end, &v);
        if (used == 0) return false;
        cell_out->rowid = (i64)v;
        p += used;
    }
    if (level->kind == SQF_TABLE_INTERIOR) return true;
    cell_out->local = p;
    cell_out->local_bytes = sqf_local_bytes(usable, sqf_is_index(level->kind),
                                            cell_out->payload_bytes);
    bool spills = cell_out->local_bytes < cell_out->payload_bytes;
    if (cell_out->local_bytes + (spills ? 4u : 0u) > (size_t)(end - p)) return false;
    if (spills) cell_out->overflow = load_be32(p + cell_out->local_bytes);
    return true;
}

/* The whole payload.  *good_out false: it is damaged and, in salvage mode, to be left out. */
static Err
payload_gather(Walk *walk, const CellAt *cell, u32 page, Slice *payload_out, bool *good_out)
{
    Sqf *sqf = walk->sqf;
    *good_out = true;
    *payload_out = SLICE(cell->local, cell->local_bytes);
    if (cell->local_bytes == cell->payload_bytes) return OK;
    buf_clear(&sqf->payload);
    Err err = buf_append(&sqf->payload, cell->local, cell->local_bytes);
    u64 left = cell->payload_bytes - cell->local_bytes;
    u32 next = cell->overflow, room = sqf->info.usable_bytes - 4;
    while (err == OK && left > 0) {
        ErrMsg why = {0};
        *good_out = false;
        if (!page_take(sqf, next)) {
            return sqf__damage(sqf, walk->msg,
                               "page %u: a value of %llu bytes goes on at page %u, which is %s",
                               page, (unsigned long long)cell->payload_bytes, next,
                               next == 0 || next > sqf->info.pages ? "not there" : "used already");
        }
        err = sqf_read_page(sqf, next, sqf->chain_page, &why);
        if (err == ERR_CORRUPT || err == ERR_IO_SHORT_READ) {
            err = sqf__damage(sqf, walk->msg, "%s", err_message(&why));
            err_clear(&why);
            return err;
        }
        if (err != OK) {
            err_move(walk->msg, &why);
            return err;
        }
        sqf->pages_read++;
        size_t part = (size_t)MIN_OF(left, (u64)room);
        err = buf_append(&sqf->payload, sqf->chain_page + 4, part);
        next = load_be32(sqf->chain_page);
        left -= part;
    }
    if (err != OK) return err_set(walk->msg, err, NULL);
    *good_out = true;
    *payload_out = buf_slice(&sqf->payload);
    return OK;
}

/* Hand on the entry of a cell. */
static Err
entry_visit(Walk *walk, const CellAt *cell, u32 page)
{
    Slice payload;
    bool good;
    if (!walk->is_index && walk->has_row && cell->rowid <= walk->last_rowid) {
        return sqf__damage(walk->sqf, walk->msg, "page %u: rowid %lld is out of order", page,
                           (long long)cell->rowid);
    }
    Err err = payload_gather(walk, cell, page, &payload, &good);
    if (err != OK || !good) return err;
    walk->last_rowid = cell->rowid;
    walk->has_row = true;
    return walk->each(walk->arg, cell->rowid, payload);
}

/* ---- pages ---- */

/* Does the head of the page make sense?  NULL: yes; else what is wrong. */
static const char *
page_fault(const Walk *walk, const Level *level)
{
    const Sqf *sqf = walk->sqf;
    u32 kind = level->kind;
    bool known = kind == SQF_INDEX_INTERIOR || kind == SQF_TABLE_INTERIOR ||
                 kind == SQF_INDEX_LEAF || kind == SQF_TABLE_LEAF;
    if (!known) return "is no page of a b-tree";
    if (sqf_is_index(kind) != walk->is_index) {
        return walk->is_index ? "belongs to a table, not to an index"
                              : "belongs to an index, not to a table";
    }
    u32 pointers = level->head + sqf_page_head_bytes(kind);
    if (pointers + 2 * level->cells > sqf->info.usable_bytes) return "has more cells than fit";
    return NULL;
}

/* Step down to a page. */
static Err
page_enter(Walk *walk, u32 page, u32 from)
{
    Sqf *sqf = walk->sqf;
    ErrMsg why = {0};
    if (walk->depth == SQF_DEPTH_MAX)
        return sqf__damage(sqf, walk->msg, "page %u: the tree is too deep", page);
    if (page == 0 || page > sqf->info.pages)
        return sqf__damage(sqf, walk->msg, "page %u leads to page %u, which is not there", from,
                           page);
    if (!page_take(sqf, page))
        return sqf__damage(sqf, walk->msg, "page %u leads to page %u, which is used already", from,
                           page);
    u8 **bytes = &sqf->level[walk->depth];
    if (*bytes == NULL) *bytes = mem_alloc(sqf->info.page_bytes);
    if (*bytes == NULL) return err_set(walk->msg, ERR_NOMEM, NULL);
    Err err = sqf_read_page(sqf, page, *bytes, &why);
    if (err == ERR_CORRUPT || err == ERR_IO_SHORT_READ) {
        err = sqf__damage(sqf, walk->msg, "%s", err_message(&why));
        err_clear(&why);
        return err;
    }
    if (err != OK) {
        err_move(walk->msg, &why);
        return err;
    }
    sqf->pages_read++;
    u32 head = page == 1 ? SQF_HEADER_BYTES : 0;
    Level *level = &walk->level[walk->depth];
    *level = (Level){.bytes = *bytes, .page = page, .head = head, .kind = (*bytes)[head]};
    level->cells = sqf_be16(*bytes + head + 3);
    const char *fault = page_fault(walk, level);
    if (fault != NULL) return sqf__damage(sqf, walk->msg, "page %u %s", page, fault);
    walk->depth++;
    return rt_check();
}

/* One step of the walk on the deepest page. */
static Err
page_step(Walk *walk)
{
    Level *level = &walk->level[walk->depth - 1];
    CellAt cell;
    bool interior = sqf_is_interior(level->kind);
    if (level->next == level->cells) {
        u32 page = level->page;
        bool right = interior && !level->below_done;
        level->below_done = true;
        if (!right) {
            walk->depth--;
            return OK;
        }
        return page_enter(walk, load_be32(level->bytes + level->head + 8), page);
    }
    if (!cell_parse(walk->sqf, level, level->next, &cell)) {
        level->next++;
        level->below_done = false;
        return sqf__damage(walk->sqf, walk->msg, "page %u: cell %u is damaged", level->page,
                           level->next - 1);
    }
    if (interior && !level->below_done) {
        level->below_done = true;
        return page_enter(walk, cell.child, level->page);
    }
    level->next++;
    level->below_done = false;
    if (level->kind == SQF_TABLE_INTERIOR) return OK;
    return entry_visit(walk, &cell, level->page);
}

static Err
walk_run(Sqf *sqf, u32 root, bool is_index, SqfEntry each, void *arg, ErrMsg *msg)
{
    if (sqf->info.pages == 0) return OK;
    Walk *walk = MEM_NEW(Walk);
    if (walk == NULL) return err_set(msg, ERR_NOMEM, NULL);
    walk->sqf = sqf;
    walk->is_index = is_index;
    walk->each = each;
    walk->arg = arg;
    walk->msg = msg;
    Err err = page_enter(walk, root, 1);
    while (err == OK && walk->depth > 0)
        err = page_step(walk);
    mem_free(walk);
    return err;
}

Err
sqf_scan_table(Sqf *sqf, u32 root, SqfEntry each, void *arg, ErrMsg *msg)
{
    return walk_run(sqf, root, false, each, arg, msg);
}

Err
sqf_scan_index(Sqf *sqf, u32 root, SqfEntry each, void *arg, ErrMsg *msg)
{
    return walk_run(sqf, root, true, each, arg, msg);
}

/* ---- free pages ---- */

Err
sqf_check_free(Sqf *sqf, ErrMsg *msg)
{
    u32 trunk = sqf->info.free_first, seen = 0;
    while (trunk != 0) {
        if (!page_take(sqf, trunk))
            return sqf__damage(sqf, msg, "free page %u is used already, or not there", trunk);
        Err err = sqf_read_page(sqf, trunk, sqf->chain_page, msg);
        if (err != OK) return err;
        u32 leaves = load_be32(sqf->chain_page + 4);
        if (leaves > sqf->info.usable_bytes / 4 - 2)
            return sqf__damage(sqf, msg, "free page %u lists more pages than fit", trunk);
        for (u32 i = 0; i < leaves; i++) {
            u32 leaf = load_be32(sqf->chain_page + 8 + 4 * i);
            if (!page_take(sqf, leaf))
                return sqf__damage(sqf, msg, "free page %u is used already, or not there", leaf);
        }
        seen += leaves + 1;
        trunk = load_be32(sqf->chain_page);
    }
    if (seen == sqf->info.free_pages) return OK;
    return sqf__damage(sqf, msg, "%u free pages, but its header says %u", seen,
                       sqf->info.free_pages);
}

/* ---- the schema ---- */

typedef struct SchemaList {
    Sqf *sqf;
    Arena *arena;
    Arena text; /* Of one row. */
    SqfSchemaRow *row;
    u32 count, capacity;
    ErrMsg *msg;
} SchemaList;

static Err
string_keep(SchemaList *list, const Cell *cell, const char **text_out)
{
    *text_out = NULL;
    if (cell->type == CELL_NULL) return OK;
    /* A NUL would cut the text short unnoticed. */
    if (cell->type != CELL_TEXT || memchr(cell->u.p, 0, cell->bytes) != NULL) return ERR_CORRUPT;
    *text_out = arena_strndup(list->arena, cell->u.p, cell->bytes);
    return *text_out == NULL ? ERR_NOMEM : OK;
}

static Err
schema_row(SchemaList *list, i64 rowid, Slice payload, SqfSchemaRow *row)
{
    Cell cell[5];
    u32 count;
    *row = (SqfSchemaRow){.rowid = rowid};
    arena_reset(&list->text);
    Err err = sqf_record_decode(payload, list->sqf->info.encoding, &list->text, 5, cell, &count);
    if (err == OK && count < 5) err = ERR_CORRUPT;
    if (err == OK) err = string_keep(list, &cell[0], &row->type);
    if (err == OK) err = string_keep(list, &cell[1], &row->name);
    if (err == OK) err = string_keep(list, &cell[2], &row->table);
    if (err == OK) err = string_keep(list, &cell[4], &row->sql);
    if (err != OK) return err;
    if (row->type == NULL || row->name == NULL || row->table == NULL) return ERR_CORRUPT;
    bool has_root = cell[3].type == CELL_INT;
    if (has_root && (cell[3].u.i < 0 || cell[3].u.i > U32_MAX)) return ERR_CORRUPT;
    row->root = has_root ? (u32)cell[3].u.i : 0;
    return OK;
}

static Err
schema_entry(void *arg, i64 rowid, Slice payload)
{
    SchemaList *list = arg;
    SqfSchemaRow row;
    Err err = schema_row(list, rowid, payload, &row);
    if (err == ERR_CORRUPT)
        return sqf__damage(list->sqf, list->msg, "row %lld of the schema is damaged",
                           (long long)rowid);
    if (err == OK && list->count == list->capacity) {
        u32 capacity = list->capacity * 2 + 32;
        SqfSchemaRow *bigger = ARENA_NEW_ARRAY(list->arena, SqfSchemaRow, capacity);
        if (bigger != NULL && list->count > 0)
            memcpy(bigger, list->row, list->count * sizeof(*bigger));
        err = bigger == NULL ? ERR_NOMEM : OK;
        if (err == OK) {
            list->row = bigger;
            list->capacity = capacity;
        }
    }
    if (err != OK) return err_set(list->msg, err, NULL);
    list->row[list->count++] = row;
    return OK;
}

Err
sqf_schema(Sqf *sqf, Arena *arena, SqfSchemaRow **row_out, u32 *count_out, ErrMsg *msg)
{
    SchemaList list = {.sqf = sqf, .arena = arena, .msg = msg};
    arena_init(&list.text, NULL);
    Err err = sqf_scan_table(sqf, SQF_SCHEMA_ROOT, schema_entry, &list, msg);
    arena_free(&list.text);
    *row_out = list.row;
    *count_out = list.count;
    return err;
}
