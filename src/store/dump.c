/*
 * dump.c -- a page of a data file, in words.
 *
 * Whatever the bytes are, nothing outside the page is touched: entries are told only of a node that
 * node_verify() finds sound.
 */
#include <stdarg.h>
#include <stdio.h>

#include "store/ckpt/ckpt.h"
#include "store/longval/longval.h"

#define SHOWN_BYTES 24u /* Of a key or a value. */

typedef struct Dump {
    Buf *text;
    Err err; /* The first failure to append. */
    u8 *page;
    u32 page_bytes;
} Dump;

static void PRINTF_LIKE(2, 3) say(Dump *dump, const char *format, ...);

static void
say(Dump *dump, const char *format, ...)
{
    char text[256]; /* Longer ones do not come up: names of files go by say_text(). */
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    ASSERT(bytes >= 0 && (size_t)bytes < sizeof(text));
    if (dump->err == OK) dump->err = buf_append(dump->text, text, (size_t)bytes);
}

static void
say_text(Dump *dump, const char *text)
{
    if (dump->err == OK) dump->err = buf_append_text(dump->text, text);
}

/* The first bytes in hex, and as text if they are printable. */
static void
say_bytes(Dump *dump, Slice bytes)
{
    size_t shown = MIN_OF(bytes.bytes, (size_t)SHOWN_BYTES);
    bool printable = shown > 0;
    say(dump, "x'");
    for (size_t i = 0; i < shown; i++) {
        say(dump, "%02x", bytes.p[i]);
        printable = printable && bytes.p[i] >= 32 && bytes.p[i] < 127;
    }
    say(dump, "%s'", shown < bytes.bytes ? ".." : "");
    if (printable) say(dump, " \"%.*s\"", (int)shown, (const char *)bytes.p);
}

static void
say_key(Dump *dump, bool is_int, Slice key)
{
    if (is_int && key.bytes == 8) {
        say(dump, "%lld", (long long)(load_be64(key.p) ^ (u64)1 << 63));
    } else {
        say_bytes(dump, key);
    }
}

static void
say_value(Dump *dump, Node node, u32 slot)
{
    const NodeSlot *entry = &node_slots(node)[slot];
    Slice value = node_read_value(node, slot);
    if ((entry->flags & NODE_SLOT_TOMBSTONE) != 0) {
        say(dump, ", deleted");
    } else if ((entry->flags & NODE_SLOT_LONG) != 0 && value.bytes == sizeof(LongRef)) {
        LongRef ref;
        memcpy(&ref, value.p, sizeof(ref));
        say(dump, ", a long value of %u bytes at page %u, serial %u", ref.bytes, ref.root,
            ref.serial);
    } else {
        say(dump, ", %zu bytes ", value.bytes);
        say_bytes(dump, value);
    }
    if (entry->writer == NODE_WRITER_ASK_MAP) {
        say(dump, "; its writer stood in the version map");
    } else if (entry->writer != NODE_WRITER_SETTLED) {
        say(dump, "; by writer %u", entry->writer);
    }
    say(dump, "\n");
}

static void
say_entries(Dump *dump, Node node, bool is_int)
{
    const NodeHead *head = node_head(node);
    if (head->level > 0) say(dump, "  below the first separator: page %u\n", head->child_low);
    for (u32 i = 0; i < head->count; i++) {
        u8 bytes[STORE_KEY_BYTES_MAX];
        Slice key = {bytes, node_read_key(node, i, bytes)};
        say(dump, "  %u: ", i);
        say_key(dump, is_int, key);
        if (head->level > 0) {
            say(dump, " and above: page %u\n", node_slots(node)[i].child);
        } else {
            say_value(dump, node, i);
        }
    }
}

/* Ids of transactions; they mean something only in the life that wrote the page. */
static void
say_writers(Dump *dump, Node node)
{
    u32 count;
    const u64 *ids = node_writers(node, &count);
    bool any = false;
    for (u32 i = 0; i < count; i++) {
        if (ids[i] == 0) continue;
        say(dump, "%s %u is transaction %llu", any ? "," : "  writers:", i + 1,
            (unsigned long long)ids[i]);
        any = true;
    }
    if (any) say(dump, " (of the life that wrote the page)\n");
}

static void
say_tree_node(Dump *dump, Node node)
{
    const NodeHead *head = node_head(node);
    bool is_int = (head->flags & NODE_FLAG_INT) != 0;
    const char *wrong = node_verify(node);
    say(dump, "  %s of tree %u, level %u, last changed in epoch %llu%s%s\n",
        head->level == 0 ? "a leaf" : "an inner node", head->tree_id, head->level,
        (unsigned long long)head->epoch, is_int ? ", integer keys" : "",
        (head->flags & NODE_FLAG_DEAD) != 0 ? ", merged away" : "");
    say(dump, "  %u entries", head->count);
    if (head->level == 0) say(dump, ", %u of them not deleted", head->live);
    if (wrong != NULL) {
        say(dump, "\n  not sound: %s\n", wrong);
        return;
    }
    NodeFences fences = node_fences(node);
    say(dump, "; %u bytes free, %u of them between entries\n", node_room(node), head->heap_garbage);
    say(dump, "  keys from ");
    if (fences.low.bytes == 0) {
        say(dump, "the lowest");
    } else {
        say_key(dump, is_int, fences.low);
    }
    say(dump, " to ");
    if (fences.has_high) {
        say(dump, "before ");
        say_key(dump, is_int, fences.high);
    } else {
        say(dump, "the highest");
    }
    say(dump, "; %u bytes that all share are left out\n", head->prefix_bytes);
    if (head->right != NODE_PAGE_NONE) say(dump, "  right sibling: page %u\n", head->right);
    if (head->level == 0) say_writers(dump, node);
    say_entries(dump, node, is_int);
}

/* Pages of long values do not say how much of them is used: the entry does. */
static void
say_long(Dump *dump, Node node)
{
    const NodeHead *head = node_head(node);
    bool is_data = head->level == LONG_LEVEL_DATA;
    Slice body = {node.p + NODE_HEAD_BYTES, node.bytes - NODE_HEAD_BYTES};
    say(dump, "  %s of a long value of tree %u, serial %u, written in epoch %llu\n  ",
        is_data ? "data" : "index", head->tree_id, head->child_low,
        (unsigned long long)head->epoch);
    if (is_data) {
        say_bytes(dump, body);
    } else {
        say(dump, "pages");
        for (size_t at = 0; at < body.bytes && load_u32(body.p + at) != 0; at += sizeof(u32)) {
            say(dump, " %u", load_u32(body.p + at));
        }
    }
    say(dump, "\n");
}

static void
say_slot(Dump *dump, const CkptSlotLook *look)
{
    Node node = {dump->page, dump->page_bytes};
    u8 level = node_head(node)->level;
    if (!look->fits) say(dump, "  DAMAGED, or never written: the checksum does not fit\n");
    if (look->kind == CKPT_SLOT_CHAIN) {
        say(dump, "  page %u of a chain of the checkpoint of epoch %llu, %u bytes, ", look->number,
            (unsigned long long)look->epoch, look->used);
        if (look->next == 0) {
            say(dump, "the last\n");
        } else {
            say(dump, "goes on in slot %llu\n", (unsigned long long)look->next - 1);
        }
    } else if (look->kind == CKPT_SLOT_MAP) {
        say(dump, "  part %u of the page map, of the checkpoint of epoch %llu, %u pages\n",
            look->number, (unsigned long long)look->epoch, look->used);
    } else if (level == LONG_LEVEL_DATA || level == LONG_LEVEL_INDEX) {
        say_long(dump, node);
    } else {
        say_tree_node(dump, node);
    }
}

static void
say_super(Dump *dump, const char *path, const Super *super)
{
    say_text(dump, path);
    say(dump, ": a Weft database of format %u, pages of %u bytes\n", super->version,
        super->page_bytes);
    say(dump, "  superblock %llu, %s\n", (unsigned long long)super->sequence,
        (super->flags & SUPER_CLEAN) != 0 ? "closed in order"
                                          : "in use or not closed: needs its log");
    say(dump, "  checkpoint of epoch %llu, timestamp %llu, log position %llu (needed from %llu)\n",
        (unsigned long long)super->epoch, (unsigned long long)super->cut_ts,
        (unsigned long long)super->cut_lsn, (unsigned long long)super->oldest_lsn);
    if (super->directory != 0) {
        say(dump, "  directory of the page map from slot %llu on\n",
            (unsigned long long)super->directory - 1);
    }
    if (super->description != 0) {
        say(dump, "  description of trees and undo from slot %llu on\n",
            (unsigned long long)super->description - 1);
    }
    say(dump, "  slots 0 to %u may be in use, pages 1 to %u\n", MAX_OF(super->slots_end, 1u) - 1,
        MAX_OF(super->pages_end, 1u) - 1);
}

static Err
dump_slot(Dump *dump, Ckpt *ckpt, u32 page, bool is_slot, ErrMsg *msg)
{
    u32 slot = page;
    bool found = true;
    Err err = is_slot ? OK : ckpt_look_find(ckpt, page, &found, &slot, msg);
    if (err == OK && !found) err = err_set(msg, ERR_NOTFOUND, "there is no page %u", page);
    if (err != OK) return err;
    CkptSlotLook look;
    dump->page = (u8 *)mem_alloc_aligned(4096, dump->page_bytes);
    if (dump->page == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    err = ckpt_look_slot(ckpt, slot, dump->page, &look, msg);
    if (err == OK) {
        u32 page_id = node_head((Node){dump->page, dump->page_bytes})->page_id;
        if (!is_slot || (look.kind == CKPT_SLOT_NODE && look.fits)) {
            say(dump, "page %u, in ", is_slot ? page_id : page);
        }
        say(dump, "slot %u\n", slot);
        if (!is_slot && page_id != page) say(dump, "  DAMAGED: it says it is page %u\n", page_id);
        say_slot(dump, &look);
    }
    mem_free(dump->page);
    return err;
}

Err
store_dump_page(const char *path, u32 page, bool is_slot, Buf *text, ErrMsg *msg)
{
    RtFile *file;
    Super super;
    bool found, ours;
    Err err = rt_file_open(NULL, path, RT_FILE_READ, &file, msg);
    if (err == ERR_NOTFOUND) err = err_set(msg, ERR_CANTOPEN, "no file %s", path);
    if (err != OK) return err;
    err = super_read(file, &super, &found, &ours, msg);
    if (err == OK && !found) {
        err = ours ? err_set(msg, ERR_CORRUPT, "%s: no superblock is intact", path)
                   : err_set(msg, ERR_NOTADB, "%s is not a Weft database", path);
    }
    if (err == OK) {
        Dump dump = {.text = text, .page_bytes = super.page_bytes};
        Ckpt *ckpt = NULL;
        if (page == 0 && !is_slot) {
            say_super(&dump, path, &super);
        } else {
            err = ckpt_look_open(file, &super, &ckpt, msg);
            if (err == OK) err = dump_slot(&dump, ckpt, page, is_slot, msg);
            ckpt_free(ckpt);
        }
        if (err == OK && dump.err != OK) err = err_set(msg, dump.err, "out of memory");
    }
    rt_file_close(file);
    return err;
}
