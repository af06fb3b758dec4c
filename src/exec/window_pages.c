/*
 * window_pages.c -- rows of a WINDOW node beyond the memory budget.
 *
 * The last rows stand in the arrays of WinRows; older ones that some frame still needs, or that
 * have not been given, leave for the temporary file in pages of a few hundred rows.  Cursors go
 * from front to back, so the few pages that they stand in are kept at hand, the longest unused one
 * making room.  A page that was given results is written again when it goes.
 *
 * A page that cannot be read leaves its error in WinPages.err and NULLs in its place; whoever moves
 * frames looks for it after each move.
 */
#include "exec/exec__write.h"
#include "exec/spill.h"
#include "exec/window.h"

#define PAGE_ROWS_MAX 256u
#define PAGE_ROWS_MIN 8u /* With the tiny budgets of tests. */
#define SMALL_UNIT    ((u32)1 << 10)
#define AT_HAND       8u /* Pages, and four more a frame: more than one step of a frame looks at. */

typedef struct WinPage {
    SpillRun run; /* One record: marks, then cells column by column; empty: never written. */
    u32 slot;     /* + 1; 0: not at hand. */
} WinPage;

typedef struct WinSlot {
    u64 page; /* Number of the page, + 1; 0: free. */
    u64 used; /* When it was looked at last. */
    bool dirty;
    Cell *cell; /* [columns][page_rows] */
    u8 mark[PAGE_ROWS_MAX];
    Arena bytes;
} WinSlot;

struct WinPages {
    Exec *exec;
    u32 columns;
    u32 page_rows;
    u64 origin; /* Row with which page 0 begins. */
    u64 first;  /* Pages before this one are gone. */
    u64 base;   /* Page in place 0 of the array. */
    WinPage *page;
    u32 count, capacity; /* Places in use, from `base` on. */
    WinSlot *slot;
    u32 slots;
    u32 last; /* Slot looked at last. */
    u64 clock;
    SpillWriter writer;
    SpillReader reader;
    Buf buf;
    Cell nothing; /* Stands for what could not be read. */
    Err err;
};

/* ---- life ---- */

Err
exec__win_pages_open(Exec *exec, WinRows *rows, u32 frames)
{
    WinPages *pages = MEM_NEW(WinPages);
    if (pages == NULL) return ERR_NOMEM;
    pages->exec = exec;
    pages->columns = rows->columns;
    pages->origin = rows->first;
    pages->page_rows = exec->spill.unit_bytes < SMALL_UNIT ? PAGE_ROWS_MIN : PAGE_ROWS_MAX;
    pages->slots = AT_HAND + 4 * frames;
    pages->slot = MEM_NEW_ARRAY(WinSlot, pages->slots);
    rows->pages = pages;
    if (pages->slot == NULL) {
        pages->slots = 0;
        exec__win_pages_free(rows);
        return ERR_NOMEM;
    }
    for (u32 i = 0; i < pages->slots; i++) {
        arena_init(&pages->slot[i].bytes, exec->env->account);
    }
    return OK;
}

void
exec__win_pages_free(WinRows *rows)
{
    WinPages *pages = rows->pages;
    if (pages == NULL) return;
    exec__writer_free(pages->exec, &pages->writer);
    exec__reader_free(pages->exec, &pages->reader);
    for (u32 i = 0; i < pages->count; i++) {
        exec__run_free(pages->exec, &pages->page[i].run);
    }
    for (u32 i = 0; i < pages->slots; i++) {
        arena_free(&pages->slot[i].bytes);
        mem_free(pages->slot[i].cell);
    }
    mem_free(pages->page);
    mem_free(pages->slot);
    buf_free(&pages->buf);
    mem_free(pages);
    rows->pages = NULL;
}

Err
exec__win_pages_err(const WinRows *rows)
{
    return rows->pages->err;
}

/* ---- slots ---- */

static inline Cell *
slot_cell(const WinPages *pages, const WinSlot *slot, u32 column, u32 at)
{
    return slot->cell + (size_t)column * pages->page_rows + at;
}

static inline WinPage *
page_at(const WinPages *pages, u64 number)
{
    ASSERT(number >= pages->first && number - pages->base < pages->count);
    return &pages->page[number - pages->base];
}

static Err
slot_write(WinPages *pages, WinSlot *slot)
{
    WinPage *page = page_at(pages, slot->page - 1);
    buf_clear(&pages->buf);
    Err err = exec__cells_encode(&pages->buf, slot->cell, pages->columns * pages->page_rows);
    if (err != OK) return err;
    exec__run_drop(pages->exec, &page->run);
    pages->writer.run = &page->run;
    err = exec__run_add(pages->exec, &pages->writer, (Slice){slot->mark, pages->page_rows},
                        buf_slice(&pages->buf));
    if (err == OK) err = exec__run_flush(pages->exec, &pages->writer);
    slot->dirty = false;
    return err;
}

/* A free slot, with room for cells. */
static Err
slot_take(WinPages *pages, WinSlot **slot_out)
{
    WinSlot *slot = &pages->slot[0];
    for (u32 i = 0; i < pages->slots && slot->page != 0; i++) {
        WinSlot *other = &pages->slot[i];
        if (other->page == 0 || other->used < slot->used) slot = other;
    }
    if (slot->page != 0) {
        Err err = slot->dirty ? slot_write(pages, slot) : OK;
        if (err != OK) return err;
        page_at(pages, slot->page - 1)->slot = 0;
        slot->page = 0;
    }
    arena_reset(&slot->bytes);
    if (slot->cell == NULL) {
        slot->cell = mem_alloc((size_t)pages->columns * pages->page_rows * sizeof(Cell));
    }
    *slot_out = slot;
    return slot->cell != NULL ? OK : ERR_NOMEM;
}

static void
slot_give(WinPages *pages, WinSlot *slot, u64 page)
{
    slot->page = page + 1;
    slot->used = ++pages->clock;
    pages->last = (u32)(slot - pages->slot);
    page_at(pages, page)->slot = pages->last + 1;
}

static Err
slot_read(WinPages *pages, u64 page, WinSlot **slot_out)
{
    Slice record;
    bool found;
    Err err = slot_take(pages, slot_out);
    if (err != OK) return err;
    WinSlot *slot = *slot_out;
    exec__reader_start(&pages->reader, &page_at(pages, page)->run, 0);
    err = exec__reader_next(pages->exec, &pages->reader, &record, &found);
    if (err != OK) return err;
    ASSERT(found && record.bytes >= pages->page_rows);
    memcpy(slot->mark, record.p, pages->page_rows);
    u8 *bytes = arena_bytes(&slot->bytes, record.bytes);
    if (bytes == NULL) return ERR_NOMEM;
    memcpy(bytes, record.p + pages->page_rows, record.bytes - pages->page_rows);
    exec__cells_decode((Slice){bytes, record.bytes - pages->page_rows}, slot->cell,
                       pages->columns * pages->page_rows);
    slot->dirty = false;
    slot_give(pages, slot, page);
    return OK;
}

/* The slot with the page of a row; NULL: it could not be read. */
static WinSlot *
slot_of(WinPages *pages, u64 row, u32 *at_out)
{
    u64 page = (row - pages->origin) / pages->page_rows;
    *at_out = (u32)((row - pages->origin) % pages->page_rows);
    WinSlot *slot = &pages->slot[pages->last];
    if (LIKELY(slot->page == page + 1)) return slot;
    if (pages->err != OK) return NULL;
    u32 number = page_at(pages, page)->slot;
    if (number != 0) {
        slot = &pages->slot[number - 1];
        slot->used = ++pages->clock;
        pages->last = number - 1;
        return slot;
    }
    pages->err = slot_read(pages, page, &slot);
    return pages->err == OK ? slot : NULL;
}

Cell *
exec__win_page_cell(const WinRows *rows, u32 column, u64 row)
{
    u32 at;
    WinSlot *slot = slot_of(rows->pages, row, &at);
    if (slot != NULL) return slot_cell(rows->pages, slot, column, at);
    rows->pages->nothing = cell_null();
    return &rows->pages->nothing;
}

bool
exec__win_page_marked(const WinRows *rows, u64 row, u8 mark)
{
    u32 at;
    const WinSlot *slot = slot_of(rows->pages, row, &at);
    return slot == NULL || (slot->mark[at] & mark) != 0;
}

Err
exec__win_page_store(WinRows *rows, u32 column, u64 row, const Cell *value)
{
    u32 at;
    WinSlot *slot = slot_of(rows->pages, row, &at);
    if (slot == NULL) return rows->pages->err;
    slot->dirty = true;
    return cell_copy(value, &slot->bytes, slot_cell(rows->pages, slot, column, at));
}

u32
exec__win_page_run(const WinRows *rows, u64 row)
{
    const WinPages *pages = rows->pages;
    return pages->page_rows - (u32)((row - pages->origin) % pages->page_rows);
}

/* ---- rows come and go ---- */

static Err
pages_reserve(WinPages *pages)
{
    if (pages->count < pages->capacity) return OK;
    u32 capacity = MAX_OF(pages->capacity * 2, 16u);
    WinPage *page = mem_realloc(pages->page, capacity * sizeof(WinPage));
    if (page == NULL) return ERR_NOMEM;
    pages->page = page;
    pages->capacity = capacity;
    return OK;
}

/* The rows of the arrays from place `at` on become a page. */
static Err
page_make(WinRows *rows, u32 at, const u64 *computed, u64 given)
{
    WinPages *pages = rows->pages;
    WinSlot *slot;
    Err err = pages_reserve(pages);
    if (err == OK) err = slot_take(pages, &slot);
    if (err != OK) return err;
    memcpy(slot->mark, rows->mark + at, pages->page_rows);
    for (u32 column = 0; column < rows->columns; column++) {
        const Cell *from = rows->cell[column] + at;
        for (u32 i = 0; i < pages->page_rows; i++) {
            Cell *to = slot_cell(pages, slot, column, i);
            u64 row = rows->first + at + i;
            bool is_there = row < computed[column] && (row >= given || computed[column] == U64_MAX);
            *to = is_there ? from[i] : cell_null();
            if (!is_there) continue;
            err = from[i].type >= CELL_TEXT ? cell_copy(&from[i], &slot->bytes, to) : OK;
            if (err != OK) return err;
        }
    }
    pages->page[pages->count++] = (WinPage){0};
    slot_give(pages, slot, pages->base + pages->count - 1);
    slot->dirty = true;
    return OK;
}

Err
exec__win_pages_move(WinRows *rows, const u64 *computed, u64 given, u32 *moved_out)
{
    u32 moved = 0, page_rows = rows->pages->page_rows;
    Err err = OK;
    /* The last row stays, for its successor to be compared with. */
    while (err == OK && rows->count - moved > page_rows) {
        err = page_make(rows, moved, computed, given);
        if (err == OK) moved += page_rows;
    }
    if (moved > 0) REACHED("exec: rows of a window went to a file");
    *moved_out = moved;
    return err;
}

void
exec__win_pages_prune(WinRows *rows, u64 low)
{
    WinPages *pages = rows->pages;
    u64 end = pages->base + pages->count;
    while (pages->first < end && pages->origin + (pages->first + 1) * pages->page_rows <= low) {
        WinPage *page = page_at(pages, pages->first);
        if (page->slot != 0) pages->slot[page->slot - 1].page = 0;
        exec__run_free(pages->exec, &page->run);
        pages->first++;
    }
    u32 gone = (u32)(pages->first - pages->base);
    if (gone <= pages->count / 2) return;
    /* As many go as are moved. */
    pages->count -= gone;
    pages->base = pages->first;
    memmove(pages->page, pages->page + gone, pages->count * sizeof(WinPage));
}
