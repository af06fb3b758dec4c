/*
 * overlay.c -- what lies over the file: committed frames of a write-ahead log, or the original
 * pages of a transaction that a crash cut short.
 *
 * Invariant: the places are sorted by page, one each.  Of a log the last committed frame of a page
 * counts; of a journal the first copy.
 */
#include "sqlitefile/read__impl.h"

#define WAL_MAGIC          0x377f0682u /* The low bit: checksums over big-endian numbers. */
#define WAL_VERSION        3007000u
#define WAL_HEADER_BYTES   32u
#define WAL_FRAME_BYTES    24u
#define JOURNAL_HEAD       28u
#define JOURNAL_TO_END     U32_MAX
#define JOURNAL_SECTOR_MAX 65536u

static const u8 journal_magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};

void
sqf__overlay_free(SqfOverlay *overlay)
{
    mem_free(overlay->place);
    *overlay = (SqfOverlay){0};
}

static Err
overlay_add(SqfOverlay *overlay, u32 page, u64 offset)
{
    if (overlay->count == overlay->capacity) {
        u32 capacity = overlay->capacity == 0 ? 256 : overlay->capacity * 2;
        SqfPlace *bigger = mem_realloc(overlay->place, capacity * sizeof(*bigger));
        if (bigger == NULL) return ERR_NOMEM;
        overlay->place = bigger;
        overlay->capacity = capacity;
    }
    overlay->place[overlay->count] = (SqfPlace){page, overlay->count, offset};
    overlay->count++;
    return OK;
}

static int
compare_places(const void *a, const void *b)
{
    const SqfPlace *x = a, *y = b;
    if (x->page != y->page) return x->page < y->page ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Sort; of several places of a page keep the last of a log, the first of a journal. */
static void
overlay_settle(SqfOverlay *overlay)
{
    u32 kept = 0;
    sort_items(overlay->place, overlay->count, sizeof(*overlay->place), compare_places);
    for (u32 i = 0; i < overlay->count; i++) {
        bool again = kept > 0 && overlay->place[kept - 1].page == overlay->place[i].page;
        if (again && overlay->is_wal)
            overlay->place[kept - 1] = overlay->place[i];
        else if (!again)
            overlay->place[kept++] = overlay->place[i];
    }
    overlay->count = kept;
}

const SqfPlace *
sqf__overlay_find(const SqfOverlay *overlay, u32 page)
{
    u32 low = 0, high = overlay->count;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (overlay->place[middle].page < page)
            low = middle + 1;
        else
            high = middle;
    }
    return low < overlay->count && overlay->place[low].page == page ? &overlay->place[low] : NULL;
}

/* ---- the write-ahead log ---- */

typedef struct WalSum {
    u32 s0, s1;
    bool big_endian;
} WalSum;

static void
wal_sum(WalSum *sum, const u8 *p, size_t bytes)
{
    u32 s0 = sum->s0, s1 = sum->s1;
    if (sum->big_endian) {
        for (size_t i = 0; i + 8 <= bytes; i += 8) {
            s0 += load_be32(p + i) + s1;
            s1 += load_be32(p + i + 4) + s0;
        }
    } else {
        for (size_t i = 0; i + 8 <= bytes; i += 8) {
            s0 += load_u32(p + i) + s1;
            s1 += load_u32(p + i + 4) + s0;
        }
    }
    sum->s0 = s0;
    sum->s1 = s1;
}

/* A log whose header does not hold is an empty one: so was it left by a crash before its first
   commit. */
static Err
wal_header(Sqf *sqf, u8 *header, WalSum *sum, bool *valid_out, ErrMsg *msg)
{
    const SqfSource *wal = &sqf->open.wal;
    *valid_out = false;
    if (wal->size_bytes < WAL_HEADER_BYTES) return OK;
    Err err = sqf__source_read(wal, 0, header, WAL_HEADER_BYTES, msg);
    if (err != OK) return err;
    u32 magic = load_be32(header);
    if ((magic & ~1u) != WAL_MAGIC) return OK;
    *sum = (WalSum){.big_endian = (magic & 1) != 0};
    wal_sum(sum, header, 24);
    if (sum->s0 != load_be32(header + 24) || sum->s1 != load_be32(header + 28)) return OK;
    if (load_be32(header + 4) != WAL_VERSION) {
        return err_set(msg, ERR_VERSION, "%s-wal: a write-ahead log of a version that is not known",
                       sqf->name);
    }
    if (load_be32(header + 8) != sqf->info.page_bytes) {
        return err_set(msg, ERR_CORRUPT, "%s-wal: pages of %u bytes, the file has pages of %u",
                       sqf->name, load_be32(header + 8), sqf->info.page_bytes);
    }
    *valid_out = true;
    return OK;
}

Err
sqf__wal_open(Sqf *sqf, u32 *pages_out, ErrMsg *msg)
{
    const SqfSource *wal = &sqf->open.wal;
    SqfOverlay *overlay = &sqf->overlay;
    u8 header[WAL_HEADER_BYTES];
    WalSum sum;
    bool valid;
    u32 committed = 0;
    Err err = wal_header(sqf, header, &sum, &valid, msg);
    if (err != OK || !valid) return err;
    size_t frame_bytes = WAL_FRAME_BYTES + sqf->info.page_bytes;
    u8 *frame = mem_alloc(frame_bytes);
    if (frame == NULL) return err_set(msg, ERR_NOMEM, NULL);
    overlay->is_wal = true;
    for (u64 at = WAL_HEADER_BYTES; at + frame_bytes <= wal->size_bytes; at += frame_bytes) {
        err = sqf__source_read(wal, at, frame, frame_bytes, msg);
        if (err != OK) break;
        if (memcmp(frame + 8, header + 16, 8) != 0) break; /* The salts: an older life. */
        wal_sum(&sum, frame, 8);
        wal_sum(&sum, frame + WAL_FRAME_BYTES, sqf->info.page_bytes);
        if (sum.s0 != load_be32(frame + 16) || sum.s1 != load_be32(frame + 20)) break;
        u32 page = load_be32(frame);
        if (page == 0) break;
        err = overlay_add(overlay, page, at + WAL_FRAME_BYTES);
        if (err != OK) {
            err = err_set(msg, err, NULL);
            break;
        }
        if (load_be32(frame + 4) == 0) continue;
        committed = overlay->count;
        *pages_out = load_be32(frame + 4);
    }
    mem_free(frame);
    overlay->count = committed; /* What follows was never committed. */
    sqf->info.wal_frames = committed;
    overlay_settle(overlay);
    return err;
}

/* ---- the rollback journal ---- */

typedef struct JournalHead {
    u32 records, nonce, pages, sector_bytes;
} JournalHead;

static Err
journal_head(Sqf *sqf, u64 at, JournalHead *head_out, bool *valid_out, ErrMsg *msg)
{
    const SqfSource *journal = &sqf->open.journal;
    u8 bytes[JOURNAL_HEAD];
    *valid_out = false;
    if (at + JOURNAL_HEAD > journal->size_bytes) return OK;
    Err err = sqf__source_read(journal, at, bytes, JOURNAL_HEAD, msg);
    if (err != OK || memcmp(bytes, journal_magic, sizeof(journal_magic)) != 0) return err;
    *head_out = (JournalHead){
        .records = load_be32(bytes + 8),
        .nonce = load_be32(bytes + 12),
        .pages = load_be32(bytes + 16),
        .sector_bytes = load_be32(bytes + 20),
    };
    u32 sector = head_out->sector_bytes, page_bytes = load_be32(bytes + 24);
    if (sector < 32 || sector > JOURNAL_SECTOR_MAX || (sector & (sector - 1)) != 0) return OK;
    if (page_bytes != sqf->info.page_bytes) {
        return err_set(msg, ERR_CORRUPT, "%s-journal: pages of %u bytes, the file has pages of %u",
                       sqf->name, page_bytes, sqf->info.page_bytes);
    }
    *valid_out = true;
    return OK;
}

/* The records of one head; *at is where the next head would begin. */
static Err
journal_segment(Sqf *sqf, const JournalHead *head, u64 *at, bool *whole_out, u8 *record,
                ErrMsg *msg)
{
    const SqfSource *journal = &sqf->open.journal;
    u32 page_bytes = sqf->info.page_bytes;
    size_t record_bytes = page_bytes + 8u;
    u64 offset = *at + head->sector_bytes;
    *whole_out = false;
    for (u32 i = 0; head->records == JOURNAL_TO_END || i < head->records; i++) {
        if (offset + record_bytes > journal->size_bytes) return OK;
        Err err = sqf__source_read(journal, offset, record, record_bytes, msg);
        if (err != OK) return err;
        u32 page = load_be32(record), sum = head->nonce;
        for (u32 x = page_bytes - 200; x < page_bytes; x -= 200)
            sum += record[4 + x];
        if (page == 0 || page == sqf_pending_page(page_bytes)) return OK;
        if (sum != load_be32(record + 4 + page_bytes)) return OK; /* Torn: not used by SQLite. */
        if (page <= head->pages) {
            err = overlay_add(&sqf->overlay, page, offset + 4);
            if (err != OK) return err_set(msg, err, NULL);
        }
        offset += record_bytes;
    }
    *whole_out = true;
    *at = (offset + head->sector_bytes - 1) / head->sector_bytes * head->sector_bytes;
    return OK;
}

Err
sqf__journal_open(Sqf *sqf, u32 *pages_out, ErrMsg *msg)
{
    JournalHead head = {0};
    bool more;
    u64 at = 0;
    Err err = journal_head(sqf, 0, &head, &more, msg);
    if (err != OK || !more) return err;
    u8 *record = mem_alloc(sqf->info.page_bytes + 8u);
    if (record == NULL) return err_set(msg, ERR_NOMEM, NULL);
    *pages_out = head.pages;
    while (err == OK && more) {
        err = journal_segment(sqf, &head, &at, &more, record, msg);
        if (err == OK && more) {
            JournalHead next = {0};
            err = journal_head(sqf, at, &next, &more, msg);
            next.pages = head.pages; /* The first head says how large the file was. */
            if (more) head = next;
        }
    }
    mem_free(record);
    overlay_settle(&sqf->overlay);
    sqf->info.journal_pages = sqf->overlay.count;
    return err;
}
