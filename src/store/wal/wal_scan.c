/*
 * wal_scan.c -- which part of the log counts, and whether any of it is missing.
 *
 * The scan follows a path: segments of the generation that the data file names, then those of the
 * generation that continues it where it ends, and so on.  The path ends at the first batch that is
 * not valid in its place.  That is a torn tail, unless something states that more was durable: a
 * batch of a generation on the path found further on, the data file, or a segment head (a segment
 * states that all below its start was durable).  Then it is damage, and the store is not opened.
 */
#include "store/wal/wal_scan.h"

#include "store/wal/wal_segment.h"

#define GENERATIONS_MAX 4096u

typedef struct Scan {
    const WalScanStart *start;
    WalRecordFn each;
    void *arg;
    ErrMsg *msg;
    WalSegment *list;
    WalSegment *at; /* The segment being read. */
    u8 *bytes;      /* Its contents. */
    u64 position;   /* The path's end so far. */
    u64 stated;     /* Highest durable position stated by anything. */
    u64 generation;
    u64 passed[GENERATIONS_MAX]; /* Generations on the path. */
    u32 passed_count;
    u64 records;
} Scan;

static bool
on_path(const Scan *scan, u64 generation)
{
    for (u32 i = 0; i < scan->passed_count; i++) {
        if (scan->passed[i] == generation) return true;
    }
    return false;
}

static bool
is_ours(const Scan *scan, const WalSegment *segment)
{
    return segment->has_head && segment->head.store_id == scan->start->store_id;
}

static Err
damaged(Scan *scan, const char *what)
{
    const WalSegment *at = scan->at;
    u64 offset = at == NULL ? 0 : WAL_SEGMENT_DATA_START + scan->position - at->head.start;
    return err_set(scan->msg, ERR_CORRUPT,
                   "the log is damaged: %s, file %s, offset %llu, position %llu", what,
                   at == NULL ? "(none)" : rt_file_name(at->file), (unsigned long long)offset,
                   (unsigned long long)scan->position);
}

/* ---- one segment ---- */

static Err
segment_load(Scan *scan)
{
    WalSegment *segment = scan->at;
    if (segment->file_bytes < segment->head.file_bytes) {
        return err_set(scan->msg, ERR_CORRUPT, "the log is damaged: file %s is cut short",
                       rt_file_name(segment->file));
    }
    mem_free(scan->bytes);
    scan->bytes = NULL;
    scan->bytes = (u8 *)mem_alloc(segment->file_bytes + 1);
    if (scan->bytes == NULL) return err_set(scan->msg, ERR_NOMEM, "out of memory");
    return rt_file_read_exact(segment->file, 0, scan->bytes, segment->file_bytes, scan->msg);
}

/* The batch at a file offset, or NULL when there is no valid one of that place. */
static const WalBatchHead *
batch_at(const Scan *scan, u64 offset, u64 position, WalBatchHead *head)
{
    const WalSegment *segment = scan->at;
    if (offset + sizeof(*head) > segment->file_bytes) return NULL;
    memcpy(head, scan->bytes + offset, sizeof(*head));
    if (!wal__batch_head_ok(head)) return NULL;
    if (head->position != position || head->generation != segment->head.generation) return NULL;
    if (head->payload_bytes > segment->file_bytes - offset - sizeof(*head)) return NULL;
    u64 seed = wal_batch_seed(head->generation, position);
    const u8 *payload = scan->bytes + offset + sizeof(*head);
    if (checksum64(payload, head->payload_bytes, seed) != head->payload_checksum) return NULL;
    return head;
}

static Err
batch_records(Scan *scan, const WalBatchHead *head, const u8 *payload)
{
    u64 at = 0;
    while (at < head->payload_bytes) {
        WalRecordHead record;
        u64 left = head->payload_bytes - at;
        if (left < sizeof(record)) return damaged(scan, "a record is cut off");
        memcpy(&record, payload + at, sizeof(record));
        if (record.bytes < sizeof(record) || record.bytes > left) {
            return damaged(scan, "a record has a wrong length");
        }
        u64 start = head->position + sizeof(*head) + at;
        const u8 *piece = payload + at + sizeof(record);
        WalRecord found = {.generation = head->generation,
                           .start = start,
                           .head = &record,
                           .piece = {piece, record.bytes - sizeof(record)},
                           .file = scan->at->file,
                           .offset = (u64)(piece - scan->bytes)};
        Err err = scan->each(scan->arg, &found);
        if (err != OK) return err;
        scan->records++;
        at += ALIGN_UP(record.bytes, 8);
    }
    return OK;
}

/* Read the batches of the current segment up to the first that is not valid. */
static Err
segment_scan(Scan *scan)
{
    Err err = segment_load(scan);
    if (err != OK) return err;
    WalSegment *segment = scan->at;
    scan->stated = MAX_OF(scan->stated, segment->head.start);
    for (;;) {
        u64 offset = WAL_SEGMENT_DATA_START + scan->position - segment->head.start;
        WalBatchHead head;
        if (batch_at(scan, offset, scan->position, &head) == NULL) return OK;
        err = batch_records(scan, &head, scan->bytes + offset + sizeof(head));
        if (err != OK) return err;
        scan->stated = MAX_OF(scan->stated, head.durable);
        scan->position += ALIGN_UP(sizeof(head) + head.payload_bytes, WAL_BATCH_ALIGN);
    }
}

/* What batches beyond the path's end say was durable. */
static void
statements_beyond(Scan *scan)
{
    const WalSegment *segment = scan->at;
    u64 offset = WAL_SEGMENT_DATA_START + scan->position - segment->head.start;
    for (; offset + sizeof(WalBatchHead) <= segment->file_bytes; offset += WAL_BATCH_ALIGN) {
        WalBatchHead head;
        if (load_u32(scan->bytes + offset) != WAL_BATCH_MAGIC) continue;
        memcpy(&head, scan->bytes + offset, sizeof(head));
        u64 position = segment->head.start + offset - WAL_SEGMENT_DATA_START;
        if (!wal__batch_head_ok(&head) || head.position != position) continue;
        if (head.generation != segment->head.generation) continue;
        scan->stated = MAX_OF(scan->stated, head.durable);
    }
}

/* ---- the path ---- */

/*
 * The segment that goes on where the path has come to; higher numbers only, so no rings.  Of
 * several the one with the highest number: the others are starts that failed, or were followed by
 * a crash, before anything was written behind them.
 */
static WalSegment *
next_on_path(const Scan *scan)
{
    WalSegment *next = NULL;
    for (WalSegment *segment = scan->at->next; segment != NULL; segment = segment->next) {
        if (!is_ours(scan, segment) || segment->head.start != scan->position) continue;
        bool continues = segment->head.generation == scan->generation ||
                         segment->head.previous_generation == scan->generation;
        if (continues) next = segment;
    }
    return next;
}

/* The segment that holds the oldest wanted position. */
static WalSegment *
first_on_path(const Scan *scan)
{
    WalSegment *first = NULL;
    for (WalSegment *segment = scan->list; segment != NULL; segment = segment->next) {
        if (!is_ours(scan, segment) || segment->head.generation != scan->start->generation) {
            continue;
        }
        if (segment->head.start <= scan->start->oldest) first = segment;
    }
    return first;
}

/* Segments of the path's generations, or continuing one, that begin beyond its end. */
static void
heads_beyond(Scan *scan)
{
    for (const WalSegment *segment = scan->list; segment != NULL; segment = segment->next) {
        if (!is_ours(scan, segment)) continue;
        bool concerns = on_path(scan, segment->head.generation) ||
                        on_path(scan, segment->head.previous_generation);
        if (concerns) scan->stated = MAX_OF(scan->stated, segment->head.start);
    }
}

/* A file whose head is lost may still hold batches that can tell where they belong. */
static Err
headless_files(Scan *scan)
{
    for (WalSegment *segment = scan->list; segment != NULL; segment = segment->next) {
        if (segment->has_head || segment->file_bytes < WAL_SEGMENT_DATA_START) continue;
        WalBatchHead head;
        size_t got;
        Err err = rt_file_read(segment->file, WAL_SEGMENT_DATA_START, &head, sizeof(head), &got,
                               scan->msg);
        if (err != OK) return err;
        if (got < sizeof(head) || !wal__batch_head_ok(&head)) continue;
        if (!on_path(scan, head.generation) || head.position < scan->position) continue;
        return err_set(scan->msg, ERR_CORRUPT, "the log is damaged: file %s has lost its head",
                       rt_file_name(segment->file));
    }
    return OK;
}

static Err
follow(Scan *scan)
{
    scan->generation = scan->start->generation;
    scan->passed[scan->passed_count++] = scan->generation;
    scan->at = first_on_path(scan);
    if (scan->at == NULL) {
        return err_set(scan->msg, ERR_CORRUPT,
                       "the log of this database is missing (generation %016llx, position %llu)",
                       (unsigned long long)scan->generation,
                       (unsigned long long)scan->start->oldest);
    }
    scan->position = scan->at->head.start;
    for (;;) {
        Err err = segment_scan(scan);
        if (err != OK) return err;
        WalSegment *next = next_on_path(scan);
        if (next == NULL) break;
        if (next->head.generation != scan->generation) {
            if (scan->passed_count == GENERATIONS_MAX) {
                return err_set(scan->msg, ERR_LIMIT, "the log has too many generations");
            }
            scan->generation = next->head.generation;
            scan->passed[scan->passed_count++] = scan->generation;
        }
        scan->at = next;
    }
    statements_beyond(scan);
    u64 log_states = scan->stated;
    heads_beyond(scan);
    scan->stated = MAX_OF(scan->stated, scan->start->durable);
    if (scan->stated > scan->position) return damaged(scan, "what was durable is not there");
    scan->stated = log_states;
    return headless_files(scan);
}

/* ---- repair ---- */

/* Write again what is not proven durable, heads included, and sync it. */
static Err
rewrite_tail(Scan *scan)
{
    for (WalSegment *segment = scan->list; segment != NULL; segment = segment->next) {
        if (!is_ours(scan, segment) || !on_path(scan, segment->head.generation)) continue;
        u64 end = MIN_OF(scan->position, segment->head.start + wal__segment_room(segment));
        if (segment->head.start > scan->position || end < scan->stated) continue;
        scan->at = segment;
        Err err = segment_load(scan);
        if (err != OK) return err;
        u64 head_bytes = MIN_OF(segment->file_bytes, WAL_SEGMENT_DATA_START);
        err = rt_file_write(segment->file, 0, scan->bytes, head_bytes, scan->msg);
        if (err != OK) return err;
        u64 from = MAX_OF(scan->stated, segment->head.start);
        if (from < end) {
            u64 offset = WAL_SEGMENT_DATA_START + from - segment->head.start;
            err = rt_file_write(segment->file, offset, scan->bytes + offset, end - from, scan->msg);
            if (err != OK) return err;
        }
        err = rt_file_sync(segment->file, scan->msg);
        if (err != OK) return err;
    }
    return OK;
}

Err
wal_scan(RtDir *dir, const char *name, const WalScanStart *start, bool repair, WalRecordFn each,
         void *arg, WalScanEnd *end_out, ErrMsg *msg)
{
    *end_out = (WalScanEnd){0};
    Scan *scan = MEM_NEW(Scan);
    if (scan == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    scan->start = start;
    scan->each = each;
    scan->arg = arg;
    scan->msg = msg;
    Err err = wal__segments_list(dir, name, repair, &scan->list, msg);
    if (err == OK) err = follow(scan);
    if (err == OK && repair && !PLANT(102)) err = rewrite_tail(scan);
    if (err == OK) {
        end_out->position = scan->position;
        end_out->durable = scan->stated;
        end_out->last_generation = scan->generation;
        end_out->records = scan->records;
        end_out->segment_no_next = 1;
        for (const WalSegment *s = scan->list; s != NULL; s = s->next) {
            end_out->segment_no_next = s->segment_no + 1;
        }
    }
    wal__segments_free(scan->list);
    mem_free(scan->bytes);
    mem_free(scan);
    return err;
}

Err
wal_scan_strays(RtDir *dir, const char *name, u64 store_id, u64 position, bool *found_out,
                u32 *segment_no_next_out, ErrMsg *msg)
{
    *found_out = false;
    *segment_no_next_out = 1;
    WalSegment *list;
    Err err = wal__segments_list(dir, name, false, &list, msg);
    if (err != OK) return err;
    for (const WalSegment *segment = list; segment != NULL && err == OK; segment = segment->next) {
        *segment_no_next_out = segment->segment_no + 1;
        if (!segment->has_head || segment->file_bytes < WAL_SEGMENT_DATA_START) continue;
        if (store_id != 0 && segment->head.store_id != store_id) continue;
        if (segment->head.start < position) continue;
        WalBatchHead head;
        size_t got;
        err = rt_file_read(segment->file, WAL_SEGMENT_DATA_START, &head, sizeof(head), &got, msg);
        if (err == OK && got == sizeof(head) && wal__batch_head_ok(&head)) *found_out = true;
    }
    wal__segments_free(list);
    return err;
}
