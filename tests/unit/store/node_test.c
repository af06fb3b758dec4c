/*
 * node_test.c -- one page of a tree against a sorted array, in all sizes and both kinds.
 *
 * Method: random inserts, replacements, removals, writers; when there is no room the node is split
 * and one half goes on; node_verify() after each step, and find, keys and values compared with the
 * model.  Then random bytes: looking at them must end and stay inside the page (ASan watches), and
 * flipped bits of a good page are either seen by node_verify() or leave its entries intact enough
 * to be read.
 */
#include "store/tree/node.h"

#include "store_kit.h"

#define ENTRIES_MAX 4096u

typedef struct Entry {
    u8 key[STORE_KEY_BYTES_MAX];
    u32 key_bytes;
    u8 *value;
    u32 value_bytes;
    u8 writer, flags;
} Entry;

typedef struct Model {
    Rng rng;
    Node node;
    u8 *scratch;
    bool is_int;
    u32 key_shape;
    Entry *entries; /* Sorted. */
    u32 count;
    u64 splits;
} Model;

static Slice
entry_key(const Entry *entry)
{
    return (Slice){entry->key, entry->key_bytes};
}

static Slice
draw_key(Model *m, u8 key[STORE_KEY_BYTES_MAX])
{
    u64 number = rng_below(&m->rng, 100000);
    if (m->is_int) {
        store_be64(key, (number - 50000) ^ ((u64)1 << 63));
        return (Slice){key, 8};
    }
    switch (m->key_shape) {
    case 0: { /* Short, of few letters: prefixes of each other, ties in the head. */
        u32 bytes = (u32)rng_below(&m->rng, 14);
        for (u32 i = 0; i < bytes; i++) {
            key[i] = (u8) "\0ab"[rng_below(&m->rng, 3)];
        }
        return (Slice){key, bytes};
    }
    case 1:
        return (Slice){key, (size_t)snprintf((char *)key, 64, "customer/%08u/orders", (u32)number)};
    default: { /* Long, alike at the start. */
        u32 bytes = 8 + (u32)rng_below(&m->rng, 300);
        memset(key, 'x', bytes);
        store_be32(key + bytes - 6, (u32)number);
        return (Slice){key, bytes};
    }
    }
}

static u32
model_find(const Model *m, Slice key, bool *exact_out)
{
    u32 at = 0;
    while (at < m->count && slice_compare(entry_key(&m->entries[at]), key) < 0) {
        at++;
    }
    *exact_out = at < m->count && slice_equal(entry_key(&m->entries[at]), key);
    return at;
}

static void
compare_all(Model *m)
{
    const char *what = node_verify(m->node);
    if (what != NULL) print_error("%s\n", what);
    assert_null(what);
    assert_int_equal(node_head(m->node)->count, m->count);
    u32 live = 0;
    for (u32 i = 0; i < m->count; i++) {
        const Entry *entry = &m->entries[i];
        u8 key[STORE_KEY_BYTES_MAX];
        assert_int_equal(node_read_key(m->node, i, key), entry->key_bytes);
        assert_memory_equal(key, entry->key, entry->key_bytes);
        assert_true(
            slice_equal(node_read_value(m->node, i), (Slice){entry->value, entry->value_bytes}));
        assert_int_equal(node_slots(m->node)[i].flags, entry->flags);
        live += (entry->flags & NODE_SLOT_TOMBSTONE) == 0;
        bool exact;
        assert_int_equal(node_find(m->node, entry_key(entry), &exact), i);
        assert_true(exact);
    }
    assert_int_equal(node_head(m->node)->live, live);
}

static void
model_remove(Model *m, u32 at)
{
    free(m->entries[at].value);
    memmove(&m->entries[at], &m->entries[at + 1], (m->count - at - 1) * sizeof(Entry));
    m->count--;
}

static void
model_set(Entry *entry, Slice value, u8 writer, u8 flags)
{
    free(entry->value);
    entry->value = (u8 *)malloc(value.bytes + 1);
    if (value.bytes > 0) memcpy(entry->value, value.p, value.bytes);
    entry->value_bytes = (u32)value.bytes;
    entry->writer = writer;
    entry->flags = flags;
}

/* Split; keep the half that the dice choose, now with other fences. */
static void
split(Model *m, u32 at, Slice key)
{
    Node right = {(u8 *)mem_alloc_aligned(64, m->node.bytes), m->node.bytes};
    u8 separator[STORE_KEY_BYTES_MAX];
    u32 separator_bytes;
    bool rising = at == m->count && node_head(m->node)->right == NODE_PAGE_NONE;
    node_split(m->node, right, 77, at, key, m->scratch, separator, &separator_bytes);
    Slice fence = {separator, separator_bytes};
    assert_null(node_verify(right));
    assert_null(node_verify(m->node));
    assert_int_equal(node_head(m->node)->right, 77);
    u32 left_count = node_head(m->node)->count;
    if (rising && !m->is_int) assert_true(left_count * 10 >= m->count * 7);
    for (u32 i = 0; i < m->count; i++) {
        assert_true((slice_compare(entry_key(&m->entries[i]), fence) < 0) == (i < left_count));
    }
    bool keeps_right = rng_below(&m->rng, 2) == 0;
    while (keeps_right && left_count > 0) {
        model_remove(m, 0);
        left_count--;
    }
    while (!keeps_right && m->count > left_count) {
        model_remove(m, m->count - 1);
    }
    if (keeps_right) memcpy(m->node.p, right.p, right.bytes);
    mem_free(right.p);
    m->splits++;
}

static u8
draw_writer(Model *m)
{
    u64 id = 1 + rng_below(&m->rng, 40);
    if (rng_below(&m->rng, 3) == 0) return 0;
    u8 index = node_writer_find(m->node, id);
    if (index == 0) index = node_writer_add(m->node, id, m->scratch);
    if (index != NODE_WRITER_ASK_MAP) assert_int_equal(node_writer_id(m->node, index), id);
    return index;
}

static void
step_put(Model *m)
{
    u8 key_bytes[STORE_KEY_BYTES_MAX], value[2000];
    Slice key = draw_key(m, key_bytes);
    if (node_against_fences(m->node, key) != 0) return;
    u32 most = MIN_OF(node_entry_bytes_max(m->node.bytes), (u32)sizeof(value));
    if (key.bytes >= most) return;
    u64 dice = rng_below(&m->rng, 4);
    u32 value_bytes = dice == 0 ? 0 : (u32)rng_below(&m->rng, dice == 1 ? most - key.bytes : 40);
    memset(value, (int)rng_below(&m->rng, 256), value_bytes);
    Slice part = {value, value_bytes};
    u8 flags = rng_below(&m->rng, 4) == 0 ? NODE_SLOT_TOMBSTONE : 0;
    u8 writer = draw_writer(m);
    bool exact, node_exact;
    u32 at = model_find(m, key, &exact);
    assert_int_equal(node_find(m->node, key, &node_exact), at);
    assert_int_equal(node_exact, exact);
    bool done = exact ? node_replace(m->node, at, part, writer, flags, m->scratch)
                      : node_insert(m->node, at, key, part, writer, flags, m->scratch);
    if (!done) {
        compare_all(m);
        split(m, at, key);
        return;
    }
    if (!exact) {
        memmove(&m->entries[at + 1], &m->entries[at], (m->count - at) * sizeof(Entry));
        m->entries[at] = (Entry){.key_bytes = (u32)key.bytes};
        memcpy(m->entries[at].key, key.p, key.bytes);
        m->count++;
    }
    model_set(&m->entries[at], part, writer, flags);
}

static void
step_other(Model *m)
{
    if (m->count == 0) return;
    u32 at = (u32)rng_below(&m->rng, m->count);
    switch (rng_below(&m->rng, 8)) {
    case 0: node_writers_wipe(m->node); break;
    case 1: {
        u8 index = node_slots(m->node)[at].writer;
        if (index == 0 || index == NODE_WRITER_ASK_MAP) break;
        node_writer_settle(m->node, index);
        assert_int_equal(node_writer_id(m->node, index), 0);
        break;
    }
    default: node_remove(m->node, at); model_remove(m, at);
    }
}

static void
run(u64 seed, u32 bytes, bool is_int, u32 key_shape, u32 steps)
{
    Model m = {.is_int = is_int, .key_shape = key_shape};
    rng_seed(&m.rng, seed);
    m.node = (Node){(u8 *)mem_alloc_aligned(64, bytes), bytes};
    m.scratch = (u8 *)mem_alloc_aligned(64, bytes);
    m.entries = (Entry *)malloc(ENTRIES_MAX * sizeof(Entry));
    for (u32 step = 0; step < steps; step++) {
        if (step % 600 == 0) {
            while (m.count > 0) {
                model_remove(&m, m.count - 1);
            }
            NodeFences all = {0};
            node_init(m.node, 1, 9, 0, is_int, &all);
        }
        if (rng_below(&m.rng, 10) < 8) {
            step_put(&m);
        } else {
            step_other(&m);
        }
        if (step % 16 == 0) compare_all(&m);
    }
    compare_all(&m);
    while (m.count > 0) {
        model_remove(&m, m.count - 1);
    }
    free(m.entries);
    mem_free(m.node.p);
    mem_free(m.scratch);
}

static void
leaves_equal_the_model(void **state)
{
    (void)state;
    for (u32 bytes = NODE_BYTES_MIN; bytes <= NODE_BYTES_MAX; bytes *= 2) {
        for (u32 shape = 0; shape < 4; shape++) {
            run(bytes + shape, bytes, shape == 3, shape, 1800);
        }
    }
}

static void
rising_keys_fill_pages(void **state)
{
    (void)state;
    u8 *page = (u8 *)mem_alloc_aligned(64, 16384), *other = (u8 *)mem_alloc_aligned(64, 16384);
    u8 *scratch = (u8 *)mem_alloc_aligned(64, 16384);
    Node node = {page, 16384}, right = {other, 16384};
    NodeFences all = {0};
    node_init(node, 1, 9, 0, true, &all);
    u8 key[8], value[100] = {0}, separator[STORE_KEY_BYTES_MAX];
    u32 at = 0, separator_bytes;
    for (;; at++) {
        store_be64(key, at);
        if (!node_insert(node, at, (Slice){key, 8}, (Slice){value, 100}, 0, 0, scratch)) break;
    }
    node_split(node, right, 2, at, (Slice){key, 8}, scratch, separator, &separator_bytes);
    u32 used = 16384 - node_room(node);
    assert_true(used * 100 > 16384 * 97);
    assert_true(node_head(right)->count <= 1);
    assert_int_equal(separator_bytes, 8);
    assert_null(node_verify(node));
    assert_null(node_verify(right));
    assert_int_equal(node_head(node)->count + node_head(right)->count, at);
    assert_int_equal(node_against_fences(node, (Slice){key, 8}), 1);
    assert_int_equal(node_against_fences(right, (Slice){key, 8}), 0);
    assert_int_equal(node_head(node)->right, 2);
    mem_free(page);
    mem_free(other);
    mem_free(scratch);
}

/* A leaf is rebuilt only when that yields a part of it worth having: rows that grow in a full leaf
   are refused, and the leaf is to be split, instead of being rebuilt for each of them. */
static void
full_leaves_are_not_rebuilt_for_a_byte(void **state)
{
    (void)state;
    u8 *page = (u8 *)mem_alloc_aligned(64, 16384), *scratch = (u8 *)mem_alloc_aligned(64, 16384);
    Node node = {page, 16384};
    NodeFences all = {0};
    node_init(node, 1, 9, 0, true, &all);
    u8 key[8], value[301] = {0};
    u32 count = 0;
    for (;; count++) {
        store_be64(key, count);
        if (!node_insert(node, count, (Slice){key, 8}, (Slice){value, 300}, 0, 0, scratch)) break;
    }
    /* And what is left, to the last byte. */
    u32 left = node_room(node) - (u32)sizeof(NodeSlot);
    assert_true(left < 300);
    assert_true(node_insert(node, count, (Slice){key, 8}, (Slice){value, left}, 0, 0, scratch));
    count++;
    store_be64(key, count);
    Slice longer = {value, 301};
    u32 need = (u32)sizeof(NodeSlot) + 8 + 300 + 16;
    for (u32 gone = 0; gone * 300 < 16384 / 8; gone++) {
        /* `gone` rows are garbage now: not enough of it to be collected. */
        assert_false(node_takes(node, need));
        assert_false(node_insert(node, count, (Slice){key, 8}, (Slice){value, 300}, 0, 0, scratch));
        if ((gone + 1) * 300 < 16384 / 8)
            assert_false(node_replace(node, 1, longer, 0, 0, scratch));
        node_remove(node, 1);
        count--;
    }
    assert_true(node_takes(node, need));
    assert_true(node_replace(node, 1, longer, 0, 0, scratch));
    assert_int_equal(node_head(node)->heap_garbage, 0);
    assert_null(node_verify(node));
    /* A single entry has nobody to part from. */
    while (count > 1) {
        node_remove(node, 1);
        count--;
    }
    assert_true(node_takes(node, 16384 / 2));
    mem_free(page);
    mem_free(scratch);
}

static void
inner_nodes_lead_to_children(void **state)
{
    (void)state;
    for (u64 seed = 1; seed <= 40; seed++) {
        Rng rng;
        rng_seed(&rng, seed);
        u32 bytes = NODE_BYTES_MIN << (seed % 3);
        Node node = {(u8 *)mem_alloc_aligned(64, bytes), bytes};
        Node right = {(u8 *)mem_alloc_aligned(64, bytes), bytes};
        u8 *scratch = (u8 *)mem_alloc_aligned(64, bytes);
        NodeFences all = {0};
        node_init(node, 1, 9, 1, false, &all);
        node_head(node)->child_low = 1000;
        u32 keys[400], count = 0;
        for (;;) {
            /* Key number k leads to child 1000 + k. */
            u32 number = 1 + (u32)rng_below(&rng, 5000);
            bool known = false;
            for (u32 i = 0; i < count; i++) {
                known = known || keys[i] == number;
            }
            if (known) continue;
            char key[32];
            snprintf(key, sizeof(key), "inner-key-%06u", number);
            if (count == 400 || !node_insert_child(node, kit_text(key), 1000 + number, scratch)) {
                break;
            }
            keys[count++] = number;
        }
        assert_true(count > 50);
        assert_null(node_verify(node));
        u8 separator[STORE_KEY_BYTES_MAX];
        u32 separator_bytes;
        node_split(node, right, 2, count / 2, kit_text("inner-key-002500"), scratch, separator,
                   &separator_bytes);
        assert_null(node_verify(node));
        assert_null(node_verify(right));
        for (u32 probe = 0; probe < 5100; probe += 7) {
            char key[32];
            snprintf(key, sizeof(key), "inner-key-%06u", probe);
            u32 want = 0;
            for (u32 i = 0; i < count; i++) {
                if (keys[i] <= probe && keys[i] > want) want = keys[i];
            }
            Node half = slice_compare(kit_text(key), (Slice){separator, separator_bytes}) < 0
                            ? node
                            : right;
            assert_int_equal(node_against_fences(half, kit_text(key)), 0);
            assert_int_equal(node_child(half, kit_text(key)), 1000 + want);
        }
        u32 victim = node_slots(node)[3].child;
        assert_true(node_remove_child(node, victim));
        assert_false(node_remove_child(node, victim));
        assert_null(node_verify(node));
        mem_free(node.p);
        mem_free(right.p);
        mem_free(scratch);
    }
}

static void
an_empty_right_sibling_is_absorbed(void **state)
{
    (void)state;
    Node node = {(u8 *)mem_alloc_aligned(64, 4096), 4096};
    Node right = {(u8 *)mem_alloc_aligned(64, 4096), 4096};
    u8 *scratch = (u8 *)mem_alloc_aligned(64, 4096);
    NodeFences narrow = {.low = kit_text("aaaa1"), .high = kit_text("aaaa5"), .has_high = true};
    NodeFences beyond = {.low = kit_text("aaaa5"), .high = kit_text("b"), .has_high = true};
    node_init(node, 1, 9, 0, false, &narrow);
    node_init(right, 2, 9, 0, false, &beyond);
    node_head(node)->right = 2;
    node_head(right)->right = 3;
    for (u32 i = 0; i < 40; i++) {
        char key[32];
        snprintf(key, sizeof(key), "aaaa2%03u-long-enough", i);
        assert_true(node_insert(node, i, kit_text(key), kit_text("value"), 0, 0, scratch));
    }
    assert_true(node_join(node, right, scratch));
    assert_null(node_verify(node));
    assert_int_equal(node_head(node)->right, 3);
    assert_int_equal(node_against_fences(node, kit_text("azzz")), 0);
    bool exact;
    assert_int_equal(node_find(node, kit_text("aaaa2007-long-enough"), &exact), 7);
    assert_true(exact);
    mem_free(node.p);
    mem_free(right.p);
    mem_free(scratch);
}

/* Whatever the bytes, looking ends and stays inside. */
static void
look_around(Node node, Rng *rng)
{
    u8 key[STORE_KEY_BYTES_MAX];
    for (u32 i = 0; i < 20; i++) {
        u32 bytes = (u32)rng_below(rng, 40);
        for (u32 k = 0; k < bytes; k++) {
            key[k] = (u8)rng_next(rng);
        }
        bool exact;
        u32 slot = node_find(node, (Slice){key, bytes}, &exact);
        node_child(node, (Slice){key, bytes});
        node_against_fences(node, (Slice){key, bytes});
        if (slot >= (node.bytes - NODE_HEAD_BYTES) / sizeof(NodeSlot)) continue;
        u8 copy[STORE_KEY_BYTES_MAX];
        u32 copied = node_read_key(node, slot, copy);
        assert_true(copied <= STORE_KEY_BYTES_MAX);
        Slice value = node_read_value(node, slot);
        u8 sum = 0;
        for (size_t k = 0; k < value.bytes; k++) {
            sum ^= value.p[k];
        }
        node_writer_id(node, (u8)(sum | 1));
    }
}

static void
garbage_is_survived(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 3);
    u8 *good = (u8 *)mem_alloc_aligned(64, 4096), *bad = (u8 *)mem_alloc_aligned(64, 4096);
    u8 *scratch = (u8 *)mem_alloc_aligned(64, 4096);
    Node node = {good, 4096}, damaged = {bad, 4096};
    NodeFences fences = {.low = kit_text("k0"), .high = kit_text("k9"), .has_high = true};
    node_init(node, 1, 9, 0, false, &fences);
    for (u32 i = 0; i < 60; i++) {
        char key[32];
        snprintf(key, sizeof(key), "k1%04u-and-more", i);
        u8 writer = i % 3 == 0 ? node_writer_add(node, 100 + i, scratch) : 0;
        assert_true(node_insert(node, i, kit_text(key), kit_text("value"), writer, 0, scratch));
    }
    assert_null(node_verify(node));
    for (u32 i = 0; i < 6000; i++) {
        memcpy(bad, good, 4096);
        u32 flips = 1 + (u32)rng_below(&rng, 3);
        for (u32 k = 0; k < flips; k++) {
            u32 reach = rng_below(&rng, 2) == 0 ? 64 : 4096;
            bad[rng_below(&rng, reach)] ^= (u8)(1u << rng_below(&rng, 8));
        }
        look_around(damaged, &rng);
        if (node_verify(damaged) == NULL) look_around(damaged, &rng);
    }
    for (u32 i = 0; i < 500; i++) {
        for (u32 k = 0; k < 4096; k += 8) {
            store_u64(bad + k, rng_next(&rng));
        }
        look_around(damaged, &rng);
        assert_non_null(node_verify(damaged));
    }
    mem_free(good);
    mem_free(bad);
    mem_free(scratch);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_equal_the_model),
        cmocka_unit_test(rising_keys_fill_pages),
        cmocka_unit_test(full_leaves_are_not_rebuilt_for_a_byte),
        cmocka_unit_test(inner_nodes_lead_to_children),
        cmocka_unit_test(an_empty_right_sibling_is_absorbed),
        cmocka_unit_test(garbage_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
