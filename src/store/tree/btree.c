/*
 * btree.c -- descending, looking, latching leaves.
 */
#include "rt/task.h"
#include "store/pool/pool_fast.h"
#include "store/tree/btree_impl.h"
#include "store/tree/node_fast.h"

/* Restarts without an end in sight mean that the pages contradict each other. */
#define RESTARTS_MAX 200000u

/* ---- the object ---- */

static Err
btree_init(Btree *tree, PoolFile *file, const BtreePages *pages, TreeId tree_id, bool is_int)
{
    *tree = (Btree){.file = file, .pages = *pages, .tree_id = tree_id, .is_int = is_int};
    tree->page_bytes = pool_file_page_bytes(file);
    tree->scratch = (u8 *)mem_alloc_aligned(64, tree->page_bytes);
    return tree->scratch == NULL ? ERR_NOMEM : OK;
}

Err
btree_open(Btree *tree, PoolFile *file, const BtreePages *pages, TreeId tree_id, bool is_int,
           u32 root)
{
    Err err = btree_init(tree, file, pages, tree_id, is_int);
    tree->root = root;
    return err;
}

Err
btree_create(Btree *tree, PoolFile *file, const BtreePages *pages, TreeId tree_id, bool is_int)
{
    Err err = btree_init(tree, file, pages, tree_id, is_int);
    if (err == OK) err = pages->take(pages->arg, &tree->root);
    if (err != OK) {
        btree_close(tree);
        return err;
    }
    PageView view;
    err = pool_make(file, tree->root, &view);
    if (err != OK) {
        pages->give(pages->arg, tree->root);
        btree_close(tree);
        return err;
    }
    NodeFences all = {0};
    PageOp op;
    page_op_begin(pages->ops, &op);
    node_init(btree_node(tree, &view), tree->root, tree_id, 0, is_int, &all);
    node_head(btree_node(tree, &view))->epoch = tree->born_epoch = op.epoch;
    pool_unlatch(&view, true, true);
    page_op_end(&op);
    return OK;
}

void
btree_close(Btree *tree)
{
    mem_free(tree->scratch);
    mem_free(tree->dead);
    *tree = (Btree){0};
}

/* ---- descending ---- */

typedef enum Arrival { ARRIVAL_FITS, ARRIVAL_RIGHT, ARRIVAL_WRONG } Arrival;

/* Is this the node that was meant?  All loads may race; the caller validates. */
static Arrival
judge(const Btree *tree, Node node, BtreeWhere where, Slice key, u8 level)
{
    const NodeHead *head = node_head(node);
    if (PLANT(145) && head->level == level) return ARRIVAL_FITS; /* Any page is the one. */
    if (head->tree_id != tree->tree_id || head->level != level) return ARRIVAL_WRONG;
    if ((head->flags & NODE_FLAG_DEAD) != 0) return ARRIVAL_WRONG;
    if (where == BTREE_LAST) {
        return head->right != NODE_PAGE_NONE ? ARRIVAL_RIGHT : ARRIVAL_FITS;
    }
    if (where == BTREE_AT) {
        int side = node_against_fences(node, key);
        return side < 0 ? ARRIVAL_WRONG : side > 0 ? ARRIVAL_RIGHT : ARRIVAL_FITS;
    }
    NodeFences fences = node_fences(node);
    if (slice_compare(fences.low, key) >= 0) return ARRIVAL_WRONG;
    bool reaches = !fences.has_high || slice_compare(fences.high, key) >= 0;
    return reaches ? ARRIVAL_FITS : ARRIVAL_RIGHT;
}

static u32
child_for(Node node, BtreeWhere where, Slice key)
{
    if (where == BTREE_AT) return node_child(node, key);
    return where == BTREE_BEFORE ? node_child_before(node, key) : node_child_last(node);
}

/* No bug: others get far while a scan is between a page and the next.  In the simulator. */
static void
linger(void)
{
    for (u32 i = 0; i < 12000; i++)
        rt_yield_point();
}

/* One way down.  *there_out false: something moved, start again. */
static NOINLINE Err
descend_once(Btree *tree, BtreeWhere where, Slice key, u8 level, bool scan, PageView *view,
             bool *there_out)
{
    *there_out = false;
    Err err = pool_view_fast(tree->file, tree->root, scan, view);
    if (err != OK) return err;
    u8 at = node_head(btree_node(tree, view))->level;
    for (;;) {
        Node node = btree_node(tree, view);
        Arrival arrival = at < level ? ARRIVAL_WRONG : judge(tree, node, where, key, at);
        if (arrival == ARRIVAL_WRONG) break;
        if (arrival == ARRIVAL_FITS && at == level) {
            *there_out = true;
            return OK;
        }
        u32 next = node_head(node)->right;
        if (arrival == ARRIVAL_FITS) {
            next = child_for(node, where, key);
            at--;
        }
        /* The number is only worth following if it was really there. */
        if (!pool_view_check_fast(view)) break;
        if (scan && PLANT(146)) linger();
        PageView below;
        err = pool_view_fast(tree->file, next, scan, &below);
        /* And the page must still have been reachable when its word was read. */
        if (!pool_view_end_fast(view) && !PLANT(145)) {
            if (err == OK) (void)pool_view_end_fast(&below);
            return OK;
        }
        if (err != OK) return err == ERR_NOTFOUND ? ERR_CORRUPT : err;
        *view = below;
    }
    (void)pool_view_end_fast(view);
    return OK;
}

/* The straight way to the leaf of a key, if nothing is in the way; false: go the long one. */
static NOINLINE bool
descend_straight(Btree *tree, Slice key, bool scan, PageView *view)
{
    if (UNLIKELY(pool_view_fast(tree->file, tree->root, scan, view) != OK)) return false;
    u8 at = node_head(btree_node(tree, view))->level;
    for (;;) {
        u32 next = node_enter(btree_node(tree, view), tree->tree_id, at, key);
        if (UNLIKELY(next == 0)) break;
        if (at == 0) return true;
        /* The number is only worth following if it was really there. */
        if (UNLIKELY(!pool_view_check_fast(view))) break;
        PageView below;
        Err err = pool_view_fast(tree->file, next, scan, &below);
        /* And the page must still have been reachable when its word was read. */
        bool good = pool_view_end_fast(view);
        if (UNLIKELY(err != OK)) return false;
        *view = below;
        if (UNLIKELY(!good)) break;
        at--;
    }
    (void)pool_view_end_fast(view);
    return false;
}

#ifndef WEFT_TSAN
/*
 * The same for integer keys when all pages are at hand and hot enough (`heat`: PAGE_HOT, or 0 for
 * scans).  A loop of its own, so that what it needs stays in registers.
 */
static NOINLINE bool
descend_int(const Btree *tree, u64 key, u64 heat, PageView *view_out)
{
    PoolFile *file = tree->file;
    PageEntry *entry = pool__entry_fast(file, tree->root);
    u32 page_id = tree->root;
    if (UNLIKELY(entry == NULL)) return false;
    u64 word = rt_load_acquire(&entry->word);
    if (UNLIKELY((word & (PAGE_STATE | PAGE_LATCHED | heat)) != (PAGE_RESIDENT | heat)))
        return false;
    Node node = {pool__frame_bytes(file->pool, rt_load_relaxed(&entry->frame)), tree->page_bytes};
    for (u32 at = NODE_LOAD(node_head(node)->level);; at--) {
        if (UNLIKELY(!node_is_int_home(node, tree->tree_id, at, key))) return false;
        if (at == 0) break;
        page_id = node_child_int(node, key);
        /* The number is only worth following if it was really there. */
        if (UNLIKELY(!pool_word_stands(entry, word))) return false;
        PageEntry *below = pool__entry_fast(file, page_id);
        if (UNLIKELY(below == NULL)) return false;
        u64 seen = rt_load_acquire(&below->word);
        if (UNLIKELY((seen & (PAGE_STATE | PAGE_LATCHED | heat)) != (PAGE_RESIDENT | heat))) {
            return false;
        }
        node.p = pool__frame_bytes(file->pool, rt_load_relaxed(&below->frame));
        /* And the page must still have been reachable when its word was read. */
        if (UNLIKELY(!pool_word_stands(entry, word))) return false;
        entry = below;
        word = seen;
    }
    *view_out = (PageView){
        .file = file, .entry = entry, .word = word, .bytes = node.p, .page_id = page_id};
    return true;
}
#endif

/* By the short way if there is one. */
static ALWAYS_INLINE bool
descend_short(const Btree *tree, Slice key, bool scan, PageView *view_out)
{
#ifdef WEFT_TSAN
    (void)tree, (void)key, (void)scan, (void)view_out;
    return false;
#else
    if (!tree->is_int || UNLIKELY(key.bytes != 8)) return false;
    return descend_int(tree, load_be64(key.p), scan ? 0 : PAGE_HOT, view_out);
#endif
}

Err
btree__descend(Btree *tree, BtreeWhere where, Slice key, u8 level, bool scan, PageView *view_out)
{
    if (LIKELY(where == BTREE_AT && level == 0) && !PLANT(145) && !PLANT(146)) {
        if (LIKELY(descend_short(tree, key, scan, view_out))) return OK;
        if (LIKELY(descend_straight(tree, key, scan, view_out))) return OK;
    }
    u32 rounds = 0;
    for (u32 tries = 0; tries < RESTARTS_MAX; tries++) {
        bool there;
        Err err = descend_once(tree, where, key, level, scan, view_out, &there);
        if (err != OK || there) return err;
        rt_fetch_add(&tree->restarts, 1);
        rt_spin(&rounds);
    }
    return ERR_CORRUPT;
}

Err
btree__descend_latch(Btree *tree, Slice key, u8 level, PageView *view_out)
{
    for (;;) {
        Err err = btree__descend(tree, BTREE_AT, key, level, false, view_out);
        if (err != OK || pool_view_latch(view_out)) return err;
        rt_fetch_add(&tree->restarts, 1);
    }
}

/* ---- leaves ---- */

Err
btree_leaf_latch(Btree *tree, Slice key, u32 need_bytes, PageView *view_out)
{
    for (;;) {
        Err err = btree__descend_latch(tree, key, 0, view_out);
        if (err != OK) return err;
        if (need_bytes == 0 || node_takes(btree_node(tree, view_out), need_bytes)) return OK;
        pool_unlatch(view_out, false, false);
        rt_mutex_lock(&tree->structure);
        err = btree__split(tree, 0, key, need_bytes);
        rt_mutex_unlock(&tree->structure);
        if (err != OK) return err;
    }
}

#define NEAR_MISSES 4u  /* In a row, before the guess is not tried any more. */
#define NEAR_REST   64u /* Keys, until it is tried again. */

/* View the leaf of the guess if it holds the key. */
static ALWAYS_INLINE bool
near_view(Btree *tree, BtreeNear *near, Slice key, PageView *view)
{
    if (near->tree_id != tree->tree_id) return false;
    if (UNLIKELY(near->misses >= NEAR_MISSES)) {
        near->misses = near->misses < NEAR_REST ? near->misses + 1 : 0;
        return false;
    }
    if (tree->is_int && key.bytes == 8 &&
        LIKELY(pool_view_try(tree->file, near->leaf, false, view))) {
        Node node = btree_node(tree, view);
        if (LIKELY(node_is_int_home(node, tree->tree_id, 0, load_be64(key.p)))) {
            near->misses = 0;
            return true;
        }
        near->misses++;
        return false;
    }
    if (pool_view_fast(tree->file, near->leaf, false, view) != OK) {
        near->tree_id = TREE_NONE;
        return false;
    }
    /* A leaf that says so, at one instant, is the leaf: who takes the view at its word checks. */
    if (LIKELY(node_enter(btree_node(tree, view), tree->tree_id, 0, key) != 0)) {
        near->misses = 0;
        return true;
    }
    near->misses++;
    (void)pool_view_end_fast(view);
    return false;
}

static ALWAYS_INLINE void
near_note(Btree *tree, BtreeNear *near, const PageView *view)
{
    near->tree_id = tree->tree_id;
    near->leaf = view->page_id;
}

Err
btree_leaf_latch_near(Btree *tree, BtreeNear *near, Slice key, u32 need_bytes, PageView *view_out)
{
    if (LIKELY(need_bytes == 0)) {
        if (near_view(tree, near, key, view_out)) {
            if (LIKELY(pool_view_latch_fast(view_out))) return OK;
        } else if (LIKELY(descend_short(tree, key, false, view_out))) {
            near_note(tree, near, view_out);
            if (LIKELY(pool_view_latch_fast(view_out))) return OK;
        }
    }
    Err err = btree_leaf_latch(tree, key, need_bytes, view_out);
    if (err == OK) near_note(tree, near, view_out);
    return err;
}

Err
btree_leaf_view_near(Btree *tree, BtreeNear *near, Slice key, PageView *view_out)
{
    if (near_view(tree, near, key, view_out)) return OK;
    Err err = OK;
    if (UNLIKELY(!descend_short(tree, key, false, view_out))) {
        err = btree__descend(tree, BTREE_AT, key, 0, false, view_out);
    }
    if (err == OK) near_note(tree, near, view_out);
    return err;
}

Err
btree_leaf_view(Btree *tree, BtreeWhere where, Slice key, bool scan, PageView *view_out)
{
    return btree__descend(tree, where, key, 0, scan, view_out);
}

Err
btree_leaf_copy(Btree *tree, BtreeWhere where, Slice key, bool scan, u8 *page)
{
    for (;;) {
        PageView view;
        Err err = btree__descend(tree, where, key, 0, scan, &view);
        if (err != OK) return err;
        rt_copy_racy(page, view.bytes, tree->page_bytes);
        if (pool_view_end(&view)) return OK;
        rt_fetch_add(&tree->restarts, 1);
    }
}

Err
btree_get(Btree *tree, Slice key, bool *found_out, NodeSlot *slot_out, Buf *value)
{
    *found_out = false;
    Err err = buf_reserve(value, tree->page_bytes);
    while (err == OK) {
        PageView view;
        err = btree__descend(tree, BTREE_AT, key, 0, false, &view);
        if (err != OK) break;
        Node node = btree_node(tree, &view);
        bool exact;
        u32 slot = node_find(node, key, &exact);
        if (exact) {
            *slot_out = node_slots(node)[slot];
            Slice bytes = node_read_value(node, slot);
            memcpy(value->p, bytes.p, bytes.bytes);
            value->bytes = bytes.bytes;
        }
        if (pool_view_end(&view)) {
            *found_out = exact;
            break;
        }
        rt_fetch_add(&tree->restarts, 1);
    }
    return err;
}

/* ---- estimating ---- */

/* Which part of the entries of a node lies below `key`, and the child where the rest of it is. */
static f64
part_below(Node node, Slice key, u32 *child_out)
{
    const NodeHead *head = node_head(node);
    bool exact;
    u32 slot = node_find(node, key, &exact);
    if (head->level == 0) return head->count == 0 ? 0.0 : (f64)slot / head->count;
    *child_out = node_child(node, key);
    return (f64)(slot + (exact ? 1 : 0)) / (head->count + 1);
}

Err
btree_fraction_below(Btree *tree, Slice key, f64 *fraction_out)
{
    f64 low = 0.0, width = 1.0;
    u32 page_id = tree->root;
    u8 level = 0;
    for (u32 steps = 0; steps < 64; steps++) {
        PageView view;
        Err err = pool_view(tree->file, page_id, true, &view);
        if (err != OK) return err;
        Node node = btree_node(tree, &view);
        u8 here = node_head(node)->level;
        u32 fan = node_head(node)->count + 1u, child = NODE_PAGE_NONE;
        f64 part = part_below(node, key, &child);
        bool right_level = page_id == tree->root || here == level;
        if (!pool_view_end(&view)) continue;
        if (!right_level) break;
        low += width * part;
        if (here == 0) break;
        width /= fan;
        page_id = child;
        level = (u8)(here - 1);
    }
    *fraction_out = MIN_OF(low, 1.0);
    return OK;
}

/* ---- dropping ---- */

/* The leftmost node of each level leads to the others by right links; the lowest child names the
   level below. */
void
btree_drop_pages(Btree *tree, void (*leaf)(void *arg, Node node),
                 void (*drop)(void *arg, PageView *view), void *arg)
{
    rt_mutex_lock(&tree->structure);
    u32 first = tree->root;
    while (first != NODE_PAGE_NONE) {
        u32 page_id = first, below = NODE_PAGE_NONE;
        while (page_id != NODE_PAGE_NONE) {
            PageView view;
            if (pool_latch(tree->file, page_id, &view) != OK) break;
            Node node = btree_node(tree, &view);
            if (page_id == first && node_head(node)->level > 0) below = node_head(node)->child_low;
            if (node_head(node)->level == 0) leaf(arg, node);
            page_id = node_head(node)->right;
            drop(arg, &view);
            rt_give_turn();
        }
        first = below;
    }
    rt_mutex_unlock(&tree->structure);
}

/* ---- verifying ---- */

typedef struct VerifyRun {
    Btree *tree;
    const char *what;
    u64 entries;
    u32 next_right[16]; /* By level: the node that must come next. */
} VerifyRun;

/* What was found of a page: it may end before what was wanted, if its separator is not posted yet
   (or not any more); then its right sibling goes on from there. */
typedef struct Verified {
    u32 right;
    u32 high_bytes;
    bool ends_early;
    u8 high[STORE_KEY_BYTES_MAX];
} Verified;

static Err
verify_page(VerifyRun *run, u32 page_id, u8 level, const NodeFences *wanted, Verified *found);

/* The child, and what follows it up to the upper fence without a separator in the parent. */
static Err
verify_child(VerifyRun *run, u32 child, u8 level, NodeFences part)
{
    Verified *found = MEM_NEW_ARRAY(Verified, 2);
    if (found == NULL) return ERR_NOMEM;
    Err err = OK;
    for (u32 i = 0; err == OK && run->what == NULL; i ^= 1) {
        err = verify_page(run, child, level, &part, &found[i]);
        if (!found[i].ends_early) break;
        part.low = (Slice){found[i].high, found[i].high_bytes};
        child = found[i].right;
    }
    mem_free(found);
    return err;
}

static Err
verify_children(VerifyRun *run, Node node)
{
    NodeFences all = node_fences(node), part = all;
    u8 low[STORE_KEY_BYTES_MAX], high[STORE_KEY_BYTES_MAX];
    const NodeHead *head = node_head(node);
    Err err = OK;
    for (u32 i = 0; i <= head->count && err == OK && run->what == NULL; i++) {
        if (i > 0) part.low = (Slice){low, node_read_key(node, i - 1, low)};
        part.high = all.high;
        part.has_high = all.has_high;
        if (i < head->count) {
            part.high = (Slice){high, node_read_key(node, i, high)};
            part.has_high = true;
        }
        u32 child = i == 0 ? head->child_low : node_slots(node)[i - 1].child;
        err = verify_child(run, child, (u8)(head->level - 1), part);
    }
    return err;
}

/* What is wrong with the node itself, or with its place. */
static const char *
verify_node(VerifyRun *run, Node node, u32 page_id, u8 level, const NodeFences *wanted)
{
    const NodeHead *head = node_head(node);
    const char *what = node_verify(node);
    if (what != NULL) return what;
    if (head->tree_id != run->tree->tree_id || head->page_id != page_id) return "a foreign page";
    if (head->level != level) return "a page of a wrong level";
    if ((head->flags & NODE_FLAG_DEAD) != 0) return "a dead page in the tree";
    NodeFences fences = node_fences(node);
    if (!slice_equal(fences.low, wanted->low)) return "fences differ from the parent's separators";
    if (!fences.has_high && wanted->has_high) return "a node without an end";
    if (fences.has_high && wanted->has_high && slice_compare(fences.high, wanted->high) > 0) {
        return "a node reaches beyond its parent's separator";
    }
    u32 expected = run->next_right[level];
    if (expected != 0 && expected != page_id) return "right links differ from the parents";
    run->next_right[level] = head->right;
    return (head->right == NODE_PAGE_NONE) != !fences.has_high ? "a right link astray" : NULL;
}

static Err
verify_page(VerifyRun *run, u32 page_id, u8 level, const NodeFences *wanted, Verified *found)
{
    Btree *tree = run->tree;
    PageView view;
    found->ends_early = false;
    if (level >= COUNT_OF(run->next_right)) run->what = "a tree too high";
    u8 *page = (u8 *)mem_alloc_aligned(64, tree->page_bytes);
    Err err = page == NULL ? ERR_NOMEM : OK;
    bool copied = false;
    while (err == OK && run->what == NULL && !copied) {
        err = pool_view(tree->file, page_id, true, &view);
        if (err != OK) break;
        rt_copy_racy(page, view.bytes, tree->page_bytes);
        copied = pool_view_end(&view);
    }
    if (!copied) goto done;
    Node node = {page, tree->page_bytes};
    if (run->what == NULL) run->what = verify_node(run, node, page_id, level, wanted);
    if (run->what != NULL) goto done;
    NodeFences fences = node_fences(node);
    if (fences.has_high && (!wanted->has_high || !slice_equal(fences.high, wanted->high))) {
        found->ends_early = true;
        found->right = node_head(node)->right;
        found->high_bytes = (u32)fences.high.bytes;
        memcpy(found->high, fences.high.p, fences.high.bytes);
    }
    if (level == 0) {
        run->entries += node_head(node)->count;
    } else {
        err = verify_children(run, node);
    }

done:
    mem_free(page);
    rt_give_turn();
    return err;
}

Err
btree_verify(Btree *tree, const char **what_out, u64 *entries_out)
{
    VerifyRun run = {.tree = tree};
    PageView view;
    /* Under the mutex the shape stands: fences, links, levels. */
    rt_mutex_lock(&tree->structure);
    Err err = pool_view(tree->file, tree->root, true, &view);
    if (err == OK) {
        u8 level = node_head(btree_node(tree, &view))->level;
        (void)pool_view_end(&view);
        NodeFences all = {0};
        err = verify_child(&run, tree->root, level, all);
    }
    rt_mutex_unlock(&tree->structure);
    if (err != OK) return err;
    *what_out = run.what;
    *entries_out = run.entries;
    return err;
}
