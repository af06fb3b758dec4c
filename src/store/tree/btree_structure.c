/*
 * btree_structure.c -- splits and merges.
 *
 * All of it runs under the structure mutex, so the shape of the tree changes in one place at a
 * time; entries go on changing beside it.  A split is right for readers at each instant: the new
 * right half is linked from the left one before any parent knows it.  A merge is right because the
 * parent forgets the page before it dies, and who is on the way to it finds it dead and starts
 * again.
 *
 * A second page is only ever latched by a try: if it is not at hand, everything is let go and the
 * page is loaded first.
 */
#include "rt/task.h"
#include "store/tree/btree_impl.h"

/* ---- new pages ---- */

/* A new page that nobody knows, in memory, not latched. */
static Err
page_make(Btree *tree, u32 *page_id_out)
{
    Err err = tree->pages.take(tree->pages.arg, page_id_out);
    if (err != OK) return err;
    PageView view;
    err = pool_make(tree->file, *page_id_out, &view);
    if (err != OK) {
        tree->pages.give(tree->pages.arg, *page_id_out);
        return err;
    }
    node_head(btree_node(tree, &view))->epoch = PAGE_EPOCH_NONE;
    pool_unlatch(&view, true, false);
    return OK;
}

/* Let a page go that nobody knows. */
static Err
page_unmake(Btree *tree, u32 page_id)
{
    PageView view;
    Err err = pool_latch(tree->file, page_id, &view);
    if (err != OK) return err;
    pool_drop(&view);
    tree->pages.give(tree->pages.arg, page_id);
    return OK;
}

/* Bring a page into memory, so that a try to latch it has a chance. */
static Err
page_load(Btree *tree, u32 page_id)
{
    PageView view;
    Err err = pool_view(tree->file, page_id, false, &view);
    if (err == OK) (void)pool_view_end(&view);
    return err;
}

/* ---- splits ---- */

typedef struct Split {
    u32 pages[2]; /* The new ones: the right half; of a root also the left one. */
    u8 separator[STORE_KEY_BYTES_MAX];
    u32 separator_bytes;
    bool done, posted;
    PageOp op; /* From the dividing to the unlatching of all. */
} Split;

/* Divide the latched node, which is not the root. */
static bool
split_node(Btree *tree, PageView *view, Slice key, Split *split)
{
    PageView right;
    if (!pool_try_latch(tree->file, split->pages[0], &right)) return false;
    Node node = btree_node(tree, view);
    bool exact;
    u32 at = node_find(node, key, &exact);
    page_op_begin(tree->pages.ops, &split->op);
    page_op_touch(&split->op, view); /* The right half gets the epoch of the left. */
    node_split(node, btree_node(tree, &right), split->pages[0], at, key, tree->scratch,
               split->separator, &split->separator_bytes);
    pool_unlatch(&right, true, false);
    split->done = true;
    return true;
}

/* Divide the latched root: both halves move to new pages, the root stays where it is, a level
   higher. */
static bool
split_root(Btree *tree, PageView *view, Slice key, Split *split)
{
    PageView left, right;
    if (!pool_try_latch(tree->file, split->pages[1], &left)) return false;
    if (!pool_try_latch(tree->file, split->pages[0], &right)) {
        pool_unlatch(&left, false, false);
        return false;
    }
    Node root = btree_node(tree, view), low = btree_node(tree, &left);
    page_op_begin(tree->pages.ops, &split->op);
    page_op_touch(&split->op, view);
    memcpy(low.p, root.p, root.bytes);
    node_head(low)->page_id = split->pages[1];
    bool exact;
    u32 at = node_find(low, key, &exact);
    node_split(low, btree_node(tree, &right), split->pages[0], at, key, tree->scratch,
               split->separator, &split->separator_bytes);
    u64 epoch = node_head(low)->epoch;
    u8 level = node_head(low)->level;
    NodeFences all = {0};
    node_init(root, tree->root, tree->tree_id, (u8)(level + 1), tree->is_int, &all);
    node_head(root)->epoch = epoch;
    node_head(root)->child_low = split->pages[1];
    bool fits = node_insert_child(root, (Slice){split->separator, split->separator_bytes},
                                  split->pages[0], tree->scratch);
    ASSERT(fits);
    pool_unlatch(&right, true, false);
    pool_unlatch(&left, true, false);
    split->done = split->posted = true;
    return true;
}

/* Find the node again and divide it, or see that it is not needed any more. */
static Err
split_found(Btree *tree, u8 level, Slice key, u32 need_bytes, bool of_root, Split *split)
{
    for (;;) {
        PageView view;
        Err err = btree__descend_latch(tree, key, level, &view);
        if (err != OK) return err;
        Node node = btree_node(tree, &view);
        if (node_takes(node, need_bytes) || node_head(node)->count < 2) {
            bool hopeless = !node_takes(node, need_bytes);
            pool_unlatch(&view, false, false);
            return hopeless ? ERR_TOOBIG : OK;
        }
        bool done = of_root ? split_root(tree, &view, key, split)
                            : split_node(tree, &view, key, split);
        pool_unlatch(&view, done, false);
        if (done) {
            page_op_end(&split->op);
            return OK;
        }
        err = page_load(tree, split->pages[0]);
        if (err == OK && of_root) err = page_load(tree, split->pages[1]);
        if (err != OK) return err;
    }
}

Err
btree__split(Btree *tree, u8 level, Slice key, u32 need_bytes)
{
    Split *split = MEM_NEW(Split);
    if (split == NULL) return ERR_NOMEM;
    /* Under the mutex the root stays the root. */
    PageView view;
    Err err = btree__descend_latch(tree, key, level, &view);
    bool of_root = false;
    if (err == OK) {
        of_root = view.page_id == tree->root;
        pool_unlatch(&view, false, false);
        err = page_make(tree, &split->pages[0]);
    }
    if (err == OK && of_root) {
        err = page_make(tree, &split->pages[1]);
        if (err != OK) {
            Err ignored = page_unmake(tree, split->pages[0]);
            (void)ignored;
        }
    }
    if (err != OK) goto done;
    err = split_found(tree, level, key, need_bytes, of_root, split);
    if (!split->done) {
        for (u32 i = 0; i < (of_root ? 2u : 1u); i++) {
            Err unmade = page_unmake(tree, split->pages[i]);
            if (err == OK) err = unmade;
        }
        goto done;
    }
    rt_fetch_add(&tree->splits, 1);
    if (!split->posted) {
        err = btree__post(tree, (u8)(level + 1), (Slice){split->separator, split->separator_bytes},
                          split->pages[0]);
    }

done:
    mem_free(split);
    return err;
}

Err
btree__post(Btree *tree, u8 level, Slice separator, u32 child)
{
    for (;;) {
        PageView view;
        Err err = btree__descend_latch(tree, separator, level, &view);
        if (err != OK) return err;
        PageOp op;
        page_op_begin(tree->pages.ops, &op);
        page_op_touch(&op, &view);
        bool fits = node_insert_child(btree_node(tree, &view), separator, child, tree->scratch);
        pool_unlatch(&view, fits, false);
        page_op_end(&op);
        if (fits) return OK;
        err = btree__split(tree, level, separator, (u32)(sizeof(NodeSlot) + separator.bytes + 16));
        if (err != OK) return err;
    }
}

/* ---- merges ---- */

/* Two neighbours below one parent; the right one is to go. */
typedef struct Merge {
    u32 left, right;
} Merge;

/* Which neighbours could be joined so that an empty leaf for `key` goes away; left 0: none. */
static Err
merge_choose(Btree *tree, Slice key, Merge *merge_out)
{
    *merge_out = (Merge){0};
    PageView view;
    Err err = pool_view(tree->file, tree->root, false, &view);
    if (err != OK) return err;
    bool is_leaf = node_head(btree_node(tree, &view))->level == 0;
    (void)pool_view_end(&view); /* Under the structure mutex the root's level stands. */
    if (is_leaf) return OK;
    err = btree__descend_latch(tree, key, 1, &view);
    if (err != OK) return err;
    Node parent = btree_node(tree, &view);
    const NodeHead *head = node_head(parent);
    bool exact;
    u32 at = node_find(parent, key, &exact) + (exact ? 1u : 0u);
    u32 leaf = at == 0 ? head->child_low : node_slots(parent)[at - 1].child;
    if (at > 0) {
        *merge_out = (Merge){at == 1 ? head->child_low : node_slots(parent)[at - 2].child, leaf};
    } else if (head->count > 0) {
        *merge_out = (Merge){leaf, node_slots(parent)[0].child};
    }
    pool_unlatch(&view, false, false);
    if (merge_out->left == 0) return OK;
    /* Is the leaf empty at all?  The joining looks again. */
    err = pool_view(tree->file, leaf, false, &view);
    if (err != OK) return err;
    bool is_empty = node_head(btree_node(tree, &view))->count == 0;
    if (!pool_view_end(&view) || !is_empty) *merge_out = (Merge){0};
    return OK;
}

static Err
dead_reserve(Btree *tree)
{
    if (tree->dead_count < tree->dead_room) return OK;
    u32 room = tree->dead_room * 2 + 16;
    u32 *dead = (u32 *)mem_realloc(tree->dead, room * sizeof(u32));
    if (dead == NULL) return ERR_NOMEM;
    tree->dead = dead;
    tree->dead_room = room;
    return OK;
}

/* Latch both, left first. */
static Err
latch_pair(Btree *tree, const Merge *merge, PageView *left, PageView *right)
{
    for (;;) {
        Err err = pool_latch(tree->file, merge->left, left);
        if (err != OK || pool_try_latch(tree->file, merge->right, right)) return err;
        pool_unlatch(left, false, false);
        err = page_load(tree, merge->right);
        if (err != OK) return err;
    }
}

/* The parent has forgotten the right page: join it to the left one.  *joined_out false: entries
   have come meanwhile, or they do not fit; `separator` is what the parent must know again. */
static Err
join_pair(Btree *tree, const Merge *merge, bool *joined_out)
{
    PageView left, right;
    *joined_out = false;
    Err err = latch_pair(tree, merge, &left, &right);
    if (err != OK) return err;
    Node low = btree_node(tree, &left), high = btree_node(tree, &right);
    bool one_empty = node_head(low)->count == 0 || node_head(high)->count == 0;
    PageOp op;
    page_op_begin(tree->pages.ops, &op);
    if (one_empty && node_head(low)->right == merge->right) {
        page_op_touch(&op, &left);
        page_op_touch(&op, &right);
        *joined_out = node_join(low, high, tree->scratch);
    }
    if (*joined_out) {
        node_head(high)->flags |= NODE_FLAG_DEAD;
        page_op_forget(&op, &right);
    }
    pool_unlatch(&right, *joined_out, false);
    pool_unlatch(&left, *joined_out, false);
    page_op_end(&op);
    return OK;
}

/* The low fence of a page, which only a merge of it with its left neighbour changes. */
static Err
low_fence(Btree *tree, u32 page_id, u8 key[STORE_KEY_BYTES_MAX], Slice *low_out)
{
    PageView view;
    Err err = pool_latch(tree->file, page_id, &view);
    if (err != OK) return err;
    Slice low = node_fences(btree_node(tree, &view)).low;
    memcpy(key, low.p, low.bytes);
    *low_out = (Slice){key, low.bytes};
    pool_unlatch(&view, false, false);
    return OK;
}

static Err
merge_pair(Btree *tree, const Merge *merge)
{
    u8 bytes[STORE_KEY_BYTES_MAX];
    Slice separator;
    Err err = dead_reserve(tree);
    if (err == OK) err = low_fence(tree, merge->right, bytes, &separator);
    if (err != OK) return err;
    PageView view;
    err = btree__descend_latch(tree, separator, 1, &view);
    if (err != OK) return err;
    PageOp op;
    page_op_begin(tree->pages.ops, &op);
    page_op_touch(&op, &view);
    bool removed = node_remove_child(btree_node(tree, &view), merge->right);
    pool_unlatch(&view, removed, false);
    page_op_end(&op);
    if (!removed) return OK;
    bool joined;
    err = join_pair(tree, merge, &joined);
    if (err == OK && joined) {
        tree->dead[tree->dead_count++] = merge->right;
        rt_fetch_add(&tree->merges, 1);
        return OK;
    }
    Err posted = btree__post(tree, 1, separator, merge->right);
    return err == OK ? posted : err;
}

Err
btree_merge_empty(Btree *tree, Slice key)
{
    Merge merge;
    rt_mutex_lock(&tree->structure);
    Err err = merge_choose(tree, key, &merge);
    if (err == OK && merge.left != 0) err = merge_pair(tree, &merge);
    rt_mutex_unlock(&tree->structure);
    return err;
}

void
btree_reclaim(Btree *tree)
{
    rt_mutex_lock(&tree->structure);
    u32 kept = 0;
    for (u32 i = 0; i < tree->dead_count; i++) {
        /* A page that cannot be loaded now stays for the next time. */
        if (page_unmake(tree, tree->dead[i]) != OK) tree->dead[kept++] = tree->dead[i];
    }
    tree->dead_count = kept;
    rt_mutex_unlock(&tree->structure);
}
