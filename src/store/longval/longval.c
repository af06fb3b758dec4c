/*
 * longval.c -- writing, reading and freeing long values.
 *
 * With P bytes of data in a page and F page ids in an index, one page holds up to P, one index up
 * to P * F, an index of indexes up to P * F * F bytes; with pages of 8 KiB that is 33 GB.
 */
#include "store/longval/longval.h"

#include "store/ckpt/page_op.h"

typedef struct LongShape {
    u32 data_bytes; /* In a data page. */
    u32 fan;        /* Ids in an index page. */
    u32 depth;      /* Index levels. */
} LongShape;

static LongShape
shape_of(const Store *store, u32 bytes)
{
    LongShape shape = {.data_bytes = store->page_bytes - NODE_HEAD_BYTES};
    shape.fan = shape.data_bytes / (u32)sizeof(u32);
    u64 holds = shape.data_bytes;
    while (holds < bytes) {
        holds *= shape.fan;
        shape.depth++;
    }
    return shape;
}

/* Bytes below one page of that depth. */
static u64
reach(const LongShape *shape, u32 depth)
{
    u64 bytes = shape->data_bytes;
    while (depth-- > 0) {
        bytes *= shape->fan;
    }
    return bytes;
}

static NodeHead *
head_of(const PageView *view)
{
    return (NodeHead *)(void *)view->bytes;
}

static u32 *
ids_of(const PageView *view)
{
    return (u32 *)(void *)(view->bytes + NODE_HEAD_BYTES);
}

static void pages_free(Store *store, const LongRef *ref, const LongShape *shape, u32 page_id,
                       u32 depth, u64 bytes);

/* A new page, latched, with its head. */
static Err
page_make(Store *store, const LongRef *ref, u32 level, PageOp *op, PageView *view_out)
{
    u32 page_id;
    Err err = store__page_take(store, &page_id);
    if (err != OK) return err;
    err = pool_make(store->pages_file, page_id, view_out);
    if (err != OK) {
        store__page_give(store, page_id);
        return err;
    }
    page_op_begin(store__page_ops(store), op);
    NodeHead *head = head_of(view_out);
    head->page_id = page_id;
    head->tree_id = ref->tree;
    head->level = (u8)level;
    head->child_low = ref->serial;
    head->epoch = op->epoch;
    return OK;
}

/* Write the pages for `bytes` at `p`, the topmost at `depth`. */
static Err
pages_write(Store *store, const LongRef *ref, const LongShape *shape, u32 depth, const u8 *p,
            u64 bytes, u32 *page_id_out)
{
    PageView view;
    PageOp op;
    if (depth == 0) {
        Err err = page_make(store, ref, LONG_LEVEL_DATA, &op, &view);
        if (err != OK) return err;
        memcpy(view.bytes + NODE_HEAD_BYTES, p, bytes);
        *page_id_out = view.page_id;
        pool_unlatch(&view, true, false);
        page_op_end(&op);
        return OK;
    }
    u64 each = reach(shape, depth - 1);
    u32 count = (u32)((bytes + each - 1) / each);
    u32 *ids = MEM_NEW_ARRAY(u32, count);
    if (ids == NULL) return ERR_NOMEM;
    Err err = OK;
    u32 done = 0;
    for (; done < count && err == OK; done++) {
        u64 from = done * each;
        err = pages_write(store, ref, shape, depth - 1, p + from, MIN_OF(each, bytes - from),
                          &ids[done]);
        if (err != OK) break;
    }
    if (err == OK) err = page_make(store, ref, LONG_LEVEL_INDEX, &op, &view);
    if (err == OK) {
        memcpy(ids_of(&view), ids, count * sizeof(u32));
        *page_id_out = view.page_id;
        pool_unlatch(&view, true, false);
        page_op_end(&op);
    } else {
        for (u32 i = 0; i < done; i++) {
            pages_free(store, ref, shape, ids[i], depth - 1, MIN_OF(each, bytes - i * each));
        }
    }
    mem_free(ids);
    return err;
}

Err
long_write(Store *store, TreeId tree, Slice value, LongRef *ref_out)
{
    ASSERT(value.bytes > 0 && value.bytes <= STORE_VALUE_BYTES_MAX);
    LongShape shape = shape_of(store, (u32)value.bytes);
    *ref_out = (LongRef){.tree = tree};
    ref_out->serial = (u32)rt_fetch_add(&store->long_serial, 1);
    Err err = pages_write(store, ref_out, &shape, shape.depth, value.p, value.bytes,
                          &ref_out->root);
    if (err == OK) ref_out->bytes = (u32)value.bytes;
    return err;
}

/* Is this the page that was meant?  Loads may race. */
static bool
is_of(const PageView *view, const LongRef *ref, u32 level)
{
    const NodeHead *head = head_of(view);
    return head->level == level && head->tree_id == ref->tree && head->child_low == ref->serial;
}

/* Copy part of one page: of its data, or of its ids. */
static Err
page_copy(Store *store, const LongRef *ref, u32 page_id, u32 level, u32 offset, void *to, u32 count,
          bool *gone_out)
{
    for (;;) {
        PageView view;
        Err err = pool_view(store->pages_file, page_id, true, &view);
        if (err == ERR_NOTFOUND) {
            *gone_out = true;
            return OK;
        }
        if (err != OK) return err;
        bool fits = is_of(&view, ref, level);
        memcpy(to, view.bytes + NODE_HEAD_BYTES + offset, count);
        if (!pool_view_end(&view)) continue;
        *gone_out = !fits;
        return OK;
    }
}

/* The data page that holds `offset`, found from the top each time: index pages are few. */
static Err
data_page(Store *store, const LongRef *ref, const LongShape *shape, u64 offset, u32 *page_id_out,
          bool *gone_out)
{
    u32 page_id = ref->root;
    for (u32 depth = shape->depth; depth > 0 && !*gone_out; depth--) {
        u64 each = reach(shape, depth - 1);
        u32 at = (u32)(offset / each);
        offset %= each;
        Err err = page_copy(store, ref, page_id, LONG_LEVEL_INDEX, at * (u32)sizeof(u32), &page_id,
                            sizeof(page_id), gone_out);
        if (err != OK) return err;
    }
    *page_id_out = page_id;
    return OK;
}

Err
long_read(Store *store, const LongRef *ref, u32 offset, u8 *to, u32 count, bool *gone_out)
{
    ASSERT(offset <= ref->bytes && count <= ref->bytes - offset);
    LongShape shape = shape_of(store, ref->bytes);
    *gone_out = false;
    while (count > 0) {
        u32 page_id;
        Err err = data_page(store, ref, &shape, offset, &page_id, gone_out);
        if (err != OK || *gone_out) return err;
        u32 at = offset % shape.data_bytes;
        u32 part = MIN_OF(shape.data_bytes - at, count);
        err = page_copy(store, ref, page_id, LONG_LEVEL_DATA, at, to, part, gone_out);
        if (err != OK || *gone_out) return err;
        offset += part;
        to += part;
        count -= part;
    }
    return OK;
}

/* Free what lies below an index page, then the page; each is a page operation. */
static void
pages_free(Store *store, const LongRef *ref, const LongShape *shape, u32 page_id, u32 depth,
           u64 bytes)
{
    PageView view;
    if (depth > 0) {
        u64 each = reach(shape, depth - 1);
        u32 count = (u32)((bytes + each - 1) / each);
        for (u32 i = 0; i < count; i++) {
            u32 below;
            bool gone = false;
            Err err = page_copy(store, ref, page_id, LONG_LEVEL_INDEX, i * (u32)sizeof(u32), &below,
                                sizeof(below), &gone);
            if (err != OK || gone) return; /* Lost to the file until it is checked. */
            pages_free(store, ref, shape, below, depth - 1, MIN_OF(each, bytes - i * each));
        }
    }
    if (pool_latch(store->pages_file, page_id, &view) != OK) return;
    store__page_drop(store, &view);
}

void
long_free(Store *store, const LongRef *ref)
{
    if (ref->bytes == 0) return;
    LongShape shape = shape_of(store, ref->bytes);
    pages_free(store, ref, &shape, ref->root, shape.depth, ref->bytes);
}
