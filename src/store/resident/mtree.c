/*
 * mtree.c -- B+tree nodes in memory.
 *
 * Invariants: keys rise through the leaves; child i of an inner node holds the keys from separator
 * i (inclusive; separator 0 stands for everything lower) to separator i + 1; only the root may be
 * a leaf with no slot.  Leaves are not merged when they shrink, only freed when empty: a queue
 * gives its memory back, and a random delete leaves room for the next insert.
 */
#include "store/resident/mtree.h"

/* A separator is a copy of its own: the key that it came from may go. */
typedef struct Separator {
    u16 bytes;
    u8 p[];
} Separator;

typedef struct MtreeInner {
    u16 count; /* Children. */
    u64 head[MTREE_FANOUT];
    Separator *separator[MTREE_FANOUT]; /* [0] may be NULL. */
    void *child[MTREE_FANOUT];
} MtreeInner;

/* Compare a key with another of the same head. */
static inline int
compare_ties(Slice a, Slice b)
{
    if (a.bytes == 8 && b.bytes == 8) return 0;
    return slice_compare(a, b);
}

/* The child of `node` that may hold `key`. */
static inline u32
inner_find(const MtreeInner *node, u64 head, Slice key)
{
    u32 low = 0, count = node->count; /* The answer is in [low, low + count). */
    while (count > 1) {
        u32 half = count / 2;
        u64 middle = node->head[low + half];
        bool right = middle < head;
        if (UNLIKELY(middle == head)) {
            const Separator *separator = node->separator[low + half];
            right = compare_ties((Slice){separator->p, separator->bytes}, key) <= 0;
        }
        low = right ? low + half : low;
        count = right ? count - half : half;
    }
    return low;
}

/* First slot whose key is not below `key`. */
static inline u32
leaf_find(const MtreeLeaf *leaf, u64 head, Slice key, bool *exact_out)
{
    u32 low = 0, count = leaf->count;
    *exact_out = false;
    while (count > 0) {
        u32 half = count / 2;
        u64 middle = leaf->head[low + half];
        bool right = middle < head;
        if (UNLIKELY(middle == head)) {
            int order = compare_ties(version_key(leaf->slot[low + half]), key);
            if (order == 0) {
                *exact_out = true;
                return low + half;
            }
            right = order < 0;
        }
        low = right ? low + half + 1 : low;
        count = right ? count - half - 1 : half;
    }
    return low;
}

MtreeLeaf *
mtree_look(const Mtree *tree, Slice key, u32 *index_out, bool *exact_out)
{
    u64 head = mtree_head(key);
    void *node = tree->root;
    *index_out = 0;
    *exact_out = false;
    if (node == NULL) return NULL;
    for (u32 level = 0; level < tree->height; level++) {
        const MtreeInner *inner = (const MtreeInner *)node;
        node = inner->child[inner_find(inner, head, key)];
    }
    MtreeLeaf *leaf = (MtreeLeaf *)node;
    *index_out = leaf_find(leaf, head, key, exact_out);
    return leaf;
}

void
mtree_find(const Mtree *tree, Slice key, MtreePath *path_out)
{
    u64 head = mtree_head(key);
    void *node = tree->root;
    path_out->leaf = NULL;
    path_out->index = 0;
    path_out->exact = false;
    if (node == NULL) return;
    for (u32 level = 0; level < tree->height; level++) {
        MtreeInner *inner = (MtreeInner *)node;
        u32 at = inner_find(inner, head, key);
        path_out->inner[level] = inner;
        path_out->at[level] = (u16)at;
        node = inner->child[at];
    }
    path_out->leaf = (MtreeLeaf *)node;
    path_out->index = leaf_find(path_out->leaf, head, key, &path_out->exact);
}

/* ---- insert ---- */

static void
leaf_put(MtreeLeaf *leaf, u32 index, Version *version)
{
    ASSERT(leaf->count < MTREE_FANOUT && index <= leaf->count);
    size_t move = leaf->count - index;
    memmove(&leaf->head[index + 1], &leaf->head[index], move * sizeof(leaf->head[0]));
    memmove(&leaf->slot[index + 1], &leaf->slot[index], move * sizeof(leaf->slot[0]));
    leaf->head[index] = mtree_head(version_key(version));
    leaf->slot[index] = version;
    leaf->count++;
}

static void
inner_put(MtreeInner *inner, u32 index, Separator *separator, void *child)
{
    ASSERT(inner->count < MTREE_FANOUT && index <= inner->count && index > 0);
    size_t move = inner->count - index;
    memmove(&inner->head[index + 1], &inner->head[index], move * sizeof(inner->head[0]));
    memmove(&inner->separator[index + 1], &inner->separator[index],
            move * sizeof(inner->separator[0]));
    memmove(&inner->child[index + 1], &inner->child[index], move * sizeof(inner->child[0]));
    inner->head[index] = mtree_head((Slice){separator->p, separator->bytes});
    inner->separator[index] = separator;
    inner->child[index] = child;
    inner->count++;
}

/* All memory that one split may need, taken before anything changes. */
typedef struct SplitStock {
    MtreeLeaf *leaf;
    Separator *separator;
    MtreeInner *inner[MTREE_HEIGHT_MAX + 1];
    u32 inners;
} SplitStock;

static void
stock_free(SplitStock *stock)
{
    mem_free(stock->leaf);
    mem_free(stock->separator);
    while (stock->inners > 0) {
        mem_free(stock->inner[--stock->inners]);
    }
}

/* Where a full leaf is cut: at the end when keys rise, at the start when they fall. */
static u32
cut_of(const Mtree *tree, const MtreePath *path)
{
    if (path->leaf == tree->last && path->index == path->leaf->count) return MTREE_FANOUT;
    if (path->leaf == tree->first && path->index == 0) return 1;
    return MTREE_FANOUT / 2;
}

static Err
stock_take(const Mtree *tree, const MtreePath *path, Slice separator_key, SplitStock *stock)
{
    *stock = (SplitStock){0};
    stock->leaf = MEM_NEW(MtreeLeaf);
    stock->separator = (Separator *)mem_alloc(sizeof(Separator) + separator_key.bytes);
    if (stock->leaf == NULL || stock->separator == NULL) goto short_of_memory;
    stock->separator->bytes = (u16)separator_key.bytes;
    memcpy(stock->separator->p, separator_key.p, separator_key.bytes);

    u32 need = 0;
    u32 level = tree->height;
    while (level > 0 && path->inner[level - 1]->count == MTREE_FANOUT) {
        need++;
        level--;
    }
    if (level == 0) need++; /* A new root. */
    if (level == 0 && tree->height + 1 > MTREE_HEIGHT_MAX) goto short_of_memory;
    for (u32 i = 0; i < need; i++) {
        stock->inner[i] = MEM_NEW(MtreeInner);
        if (stock->inner[i] == NULL) goto short_of_memory;
        stock->inners++;
    }
    return OK;

short_of_memory:
    stock_free(stock);
    return ERR_NOMEM;
}

/* Hang `child`, which lies right of the path's node at `level`, into the nodes above. */
static void
post(Mtree *tree, MtreePath *path, SplitStock *stock, Separator *separator, void *child)
{
    u32 level = tree->height;
    while (level > 0) {
        MtreeInner *inner = path->inner[level - 1];
        u32 at = path->at[level - 1] + 1u;
        if (inner->count < MTREE_FANOUT) {
            inner_put(inner, at, separator, child);
            return;
        }
        MtreeInner *right = stock->inner[--stock->inners];
        bool ascending = at == MTREE_FANOUT;
        u32 cut = ascending ? MTREE_FANOUT - 1 : MTREE_FANOUT / 2;
        right->count = (u16)(MTREE_FANOUT - cut);
        memcpy(right->head, &inner->head[cut], right->count * sizeof(right->head[0]));
        memcpy(right->separator, &inner->separator[cut],
               right->count * sizeof(right->separator[0]));
        memcpy(right->child, &inner->child[cut], right->count * sizeof(right->child[0]));
        inner->count = (u16)cut;
        /* The right node's lowest separator moves up; it stays as its own [0] no longer. */
        Separator *up = right->separator[0];
        right->separator[0] = NULL;
        right->head[0] = 0;
        if (at <= cut) {
            inner_put(inner, at, separator, child);
        } else {
            inner_put(right, at - cut, separator, child);
        }
        tree->nodes++;
        separator = up;
        child = right;
        level--;
    }
    MtreeInner *root = stock->inner[--stock->inners];
    root->count = 1;
    root->child[0] = tree->root;
    inner_put(root, 1, separator, child);
    tree->root = root;
    tree->height++;
    tree->nodes++;
}

static Err
insert_with_split(Mtree *tree, MtreePath *path, Version *version)
{
    MtreeLeaf *left = path->leaf;
    u32 cut = cut_of(tree, path);
    SplitStock stock;
    Slice separator_key = cut == MTREE_FANOUT ? version_key(version) : version_key(left->slot[cut]);
    Err err = stock_take(tree, path, separator_key, &stock);
    if (err != OK) return err;

    MtreeLeaf *right = stock.leaf;
    right->count = (u16)(MTREE_FANOUT - cut);
    memcpy(right->head, &left->head[cut], right->count * sizeof(right->head[0]));
    memcpy(right->slot, &left->slot[cut], right->count * sizeof(right->slot[0]));
    left->count = (u16)cut;
    right->prev = left;
    right->next = left->next;
    if (right->next != NULL) {
        right->next->prev = right;
    } else {
        tree->last = right;
    }
    left->next = right;

    if (path->index > cut || cut == MTREE_FANOUT) {
        leaf_put(right, path->index - cut, version);
    } else {
        leaf_put(left, path->index, version);
    }
    post(tree, path, &stock, stock.separator, right);
    ASSERT(stock.inners == 0);
    tree->nodes++;
    tree->splits++;
    return OK;
}

Err
mtree_insert(Mtree *tree, MtreePath *path, Version *version)
{
    ASSERT(!path->exact);
    if (tree->root == NULL) {
        MtreeLeaf *leaf = MEM_NEW(MtreeLeaf);
        if (leaf == NULL) return ERR_NOMEM;
        tree->root = tree->first = tree->last = leaf;
        tree->nodes = 1;
        path->leaf = leaf;
        path->index = 0;
    }
    if (path->leaf->count < MTREE_FANOUT) {
        leaf_put(path->leaf, path->index, version);
    } else {
        Err err = insert_with_split(tree, path, version);
        if (err != OK) return err;
    }
    tree->slots++;
    tree->structure++;
    return OK;
}

/* ---- remove ---- */

/* Take the empty leaf out of the nodes above, and those that it leaves empty. */
static void
unhang(Mtree *tree, MtreePath *path)
{
    u32 level = tree->height;
    while (level > 0) {
        MtreeInner *inner = path->inner[level - 1];
        u32 at = path->at[level - 1];
        mem_free(inner->separator[at]);
        size_t move = inner->count - at - 1u;
        memmove(&inner->head[at], &inner->head[at + 1], move * sizeof(inner->head[0]));
        memmove(&inner->separator[at], &inner->separator[at + 1],
                move * sizeof(inner->separator[0]));
        memmove(&inner->child[at], &inner->child[at + 1], move * sizeof(inner->child[0]));
        inner->count--;
        if (inner->count > 0) break;
        mem_free(inner);
        tree->nodes--;
        level--;
    }
    if (level == 0) {
        tree->root = NULL;
        tree->height = 0;
    }
    /* A root with one child is no level. */
    while (tree->height > 0) {
        MtreeInner *root = (MtreeInner *)tree->root;
        if (root->count > 1) break;
        tree->root = root->child[0];
        mem_free(root->separator[0]);
        mem_free(root);
        tree->height--;
        tree->nodes--;
    }
}

void
mtree_remove(Mtree *tree, MtreePath *path)
{
    ASSERT(path->exact);
    MtreeLeaf *leaf = path->leaf;
    size_t move = leaf->count - path->index - 1u;
    memmove(&leaf->head[path->index], &leaf->head[path->index + 1], move * sizeof(leaf->head[0]));
    memmove(&leaf->slot[path->index], &leaf->slot[path->index + 1], move * sizeof(leaf->slot[0]));
    leaf->count--;
    tree->slots--;
    tree->structure++;
    if (leaf->count > 0) return;

    if (leaf->prev != NULL) {
        leaf->prev->next = leaf->next;
    } else {
        tree->first = leaf->next;
    }
    if (leaf->next != NULL) {
        leaf->next->prev = leaf->prev;
    } else {
        tree->last = leaf->prev;
    }
    unhang(tree, path);
    mem_free(leaf);
    tree->nodes--;
}

static void
free_node(void *node, u32 height)
{
    if (height > 0) {
        MtreeInner *inner = (MtreeInner *)node;
        for (u32 i = 0; i < inner->count; i++) {
            mem_free(inner->separator[i]);
            free_node(inner->child[i], height - 1);
        }
    }
    mem_free(node);
}

void
mtree_free(Mtree *tree)
{
    if (tree->root != NULL) free_node(tree->root, tree->height);
    *tree = (Mtree){0};
}

/* ---- looking at the whole ---- */

f64
mtree_fraction_below(const Mtree *tree, Slice key)
{
    if (tree->root == NULL) return 0.0;
    f64 low = 0.0, width = 1.0;
    MtreePath path;
    mtree_find(tree, key, &path);
    for (u32 level = 0; level < tree->height; level++) {
        width /= (f64)path.inner[level]->count;
        low += width * (f64)path.at[level];
    }
    return low + width * (f64)path.index / (f64)path.leaf->count;
}

typedef struct VerifyWalk {
    const MtreeLeaf *leaf; /* The leaf that must come next. */
    const Version *last;   /* Highest key so far. */
    u64 slots;
    const char *what;
} VerifyWalk;

static bool
verify_leaf(VerifyWalk *walk, const MtreeLeaf *leaf, Slice low, bool has_low)
{
    if (leaf != walk->leaf) {
        walk->what = "the leaf chain differs from the tree";
        return false;
    }
    for (u32 i = 0; i < leaf->count; i++) {
        Slice key = version_key(leaf->slot[i]);
        bool rises = walk->last == NULL || slice_compare(version_key(walk->last), key) < 0;
        if (!rises) walk->what = "keys out of order";
        if (leaf->head[i] != mtree_head(key)) walk->what = "a head differs from its key";
        if (has_low && slice_compare(key, low) < 0) walk->what = "a key below its separator";
        if (walk->what != NULL) return false;
        walk->last = leaf->slot[i];
    }
    walk->slots += leaf->count;
    walk->leaf = leaf->next;
    return true;
}

static bool
verify_node(VerifyWalk *walk, const void *node, u32 height, Slice low, bool has_low)
{
    if (height == 0) return verify_leaf(walk, (const MtreeLeaf *)node, low, has_low);
    const MtreeInner *inner = (const MtreeInner *)node;
    if (inner->count == 0) {
        walk->what = "an empty inner node";
        return false;
    }
    for (u32 i = 0; i < inner->count; i++) {
        if (i > 0) {
            low = (Slice){inner->separator[i]->p, inner->separator[i]->bytes};
            has_low = true;
            if (walk->last != NULL && slice_compare(version_key(walk->last), low) >= 0) {
                walk->what = "a key not below the next separator";
                return false;
            }
        }
        if (!verify_node(walk, inner->child[i], height - 1, low, has_low)) return false;
    }
    return true;
}

bool
mtree_verify(const Mtree *tree, const char **what_out)
{
    VerifyWalk walk = {.leaf = tree->first};
    *what_out = NULL;
    if (tree->root != NULL && !verify_node(&walk, tree->root, tree->height, SLICE_NONE, false)) {
        *what_out = walk.what;
        return false;
    }
    if (walk.leaf != NULL) *what_out = "leaves beyond the tree";
    if (walk.slots != tree->slots) *what_out = "the number of slots is wrong";
    return *what_out == NULL;
}
