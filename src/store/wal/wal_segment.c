/*
 * wal_segment.c -- segment files.
 *
 * A segment is filled with zeros when it is made, so that later syncs need not also make its
 * growth durable.  Its head is written when the log reaches it: a file without a head was never
 * used.
 */
#include "store/wal/wal_segment.h"

#include <stdio.h>

#define ZERO_BYTES ((size_t)64 << 10)
static const u8 zeros[ZERO_BYTES];

char *
wal__segment_name(const char *name, u32 segment_no)
{
    size_t bytes = strlen(name) + sizeof(WAL_NAME_INFIX) + 8;
    char *text = (char *)mem_alloc(bytes);
    if (text != NULL) snprintf(text, bytes, "%s" WAL_NAME_INFIX "%08x", name, segment_no);
    return text;
}

static WalSegment *
segment_new(u32 segment_no)
{
    WalSegment *segment = MEM_NEW(WalSegment);
    if (segment != NULL) segment->segment_no = segment_no;
    return segment;
}

void
wal__segment_free(WalSegment *segment)
{
    if (segment == NULL) return;
    rt_file_close(segment->file);
    mem_free(segment);
}

void
wal__segments_free(WalSegment *list)
{
    while (list != NULL) {
        WalSegment *next = list->next;
        wal__segment_free(list);
        list = next;
    }
}

static Err
fill(RtFile *file, u64 file_bytes, ErrMsg *msg)
{
    for (u64 at = 0; at < file_bytes; at += ZERO_BYTES) {
        Err err = rt_file_write(file, at, zeros, MIN_OF(ZERO_BYTES, file_bytes - at), msg);
        if (err != OK) return err;
    }
    return rt_file_sync(file, msg);
}

Err
wal__segment_create(RtDir *dir, const char *name, u32 segment_no, u64 file_bytes,
                    WalSegment **segment_out, ErrMsg *msg)
{
    *segment_out = NULL;
    Err err = ERR_NOMEM;
    bool made = false;
    char *file_name = wal__segment_name(name, segment_no);
    WalSegment *segment = segment_new(segment_no);
    if (file_name == NULL || segment == NULL) goto done;
    err = rt_file_open(dir, file_name,
                       RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE | RT_FILE_TRUNCATE,
                       &segment->file, msg);
    if (err != OK) goto done;
    made = true;
    segment->file_bytes = file_bytes;
    err = fill(segment->file, file_bytes, msg);
    if (err != OK) goto done;
    err = rt_dir_sync(dir, msg);
    if (err != OK) goto done;
    *segment_out = segment;
    segment = NULL;

done:
    wal__segment_free(segment);
    if (err != OK && made) {
        Err ignored = rt_file_unlink(dir, file_name, NULL); /* Unused: harmless if it stays. */
        (void)ignored;
    }
    mem_free(file_name);
    return err;
}

Err
wal__segment_start(WalSegment *segment, const WalSegmentHead *head, ErrMsg *msg)
{
    segment->head = *head;
    segment->head.magic = WAL_SEGMENT_MAGIC;
    segment->head.version = WAL_VERSION;
    segment->head.segment_no = segment->segment_no;
    segment->head.file_bytes = segment->file_bytes;
    segment->head.checksum = checksum64(&segment->head, offsetof(WalSegmentHead, checksum),
                                        segment->segment_no);
    for (u64 copy = 0; copy < 2; copy++) {
        Err err = rt_file_write(segment->file, copy * WAL_SEGMENT_HEAD_COPY, &segment->head,
                                sizeof(segment->head), msg);
        if (err != OK) return err;
    }
    segment->has_head = true;
    return rt_file_sync(segment->file, msg);
}

Err
wal__segment_unlink(RtDir *dir, const char *name, u32 segment_no, ErrMsg *msg)
{
    char *file_name = wal__segment_name(name, segment_no);
    if (file_name == NULL) return ERR_NOMEM;
    Err err = rt_file_unlink(dir, file_name, msg);
    mem_free(file_name);
    return err == ERR_NOTFOUND ? OK : err;
}

/* ---- listing ---- */

static bool
head_ok(const WalSegmentHead *head, u32 segment_no)
{
    return head->magic == WAL_SEGMENT_MAGIC && head->segment_no == segment_no &&
           head->checksum == checksum64(head, offsetof(WalSegmentHead, checksum), segment_no);
}

/* Read the first good copy of the head. */
static Err
head_read(WalSegment *segment, ErrMsg *msg)
{
    for (u64 copy = 0; copy < 2; copy++) {
        WalSegmentHead head;
        size_t got;
        Err err = rt_file_read(segment->file, copy * WAL_SEGMENT_HEAD_COPY, &head, sizeof(head),
                               &got, msg);
        if (err != OK) return err;
        if (got < sizeof(head) || !head_ok(&head, segment->segment_no)) continue;
        if (head.version != WAL_VERSION) {
            return err_set(msg, ERR_VERSION, "%s: log format %u is not known",
                           rt_file_name(segment->file), head.version);
        }
        segment->head = head;
        segment->has_head = true;
        return OK;
    }
    return OK;
}

typedef struct ListRun {
    RtDir *dir;
    const char *name;
    size_t name_bytes;
    bool writable;
    WalSegment *list, **tail;
    ErrMsg *msg;
} ListRun;

/* The segment number in a file name; false: not a segment of ours. */
static bool
number_of(const ListRun *run, const char *file_name, u32 *segment_no_out)
{
    size_t infix = sizeof(WAL_NAME_INFIX) - 1;
    if (strncmp(file_name, run->name, run->name_bytes) != 0) return false;
    const char *rest = file_name + run->name_bytes;
    if (strncmp(rest, WAL_NAME_INFIX, infix) != 0 || strlen(rest) != infix + 8) return false;
    u32 number = 0;
    for (const char *p = rest + infix; *p != 0; p++) {
        bool digit = *p >= '0' && *p <= '9';
        if (!digit && (*p < 'a' || *p > 'f')) return false;
        number = number * 16 + (u32)(digit ? *p - '0' : *p - 'a' + 10);
    }
    *segment_no_out = number;
    return true;
}

static Err
list_one(void *arg, const char *file_name)
{
    ListRun *run = (ListRun *)arg;
    u32 segment_no;
    if (!number_of(run, file_name, &segment_no)) return OK;
    WalSegment *segment = segment_new(segment_no);
    if (segment == NULL) return ERR_NOMEM;
    u32 flags = RT_FILE_READ | (run->writable ? RT_FILE_WRITE : 0);
    Err err = rt_file_open(run->dir, file_name, flags, &segment->file, run->msg);
    if (err == OK) err = rt_file_size(segment->file, &segment->file_bytes, run->msg);
    if (err == OK) err = head_read(segment, run->msg);
    if (err != OK) {
        wal__segment_free(segment);
        return err;
    }
    *run->tail = segment; /* Names sort by number. */
    run->tail = &segment->next;
    return OK;
}

Err
wal__segments_list(RtDir *dir, const char *name, bool writable, WalSegment **list_out, ErrMsg *msg)
{
    ListRun run = {
        .dir = dir, .name = name, .name_bytes = strlen(name), .writable = writable, .msg = msg};
    run.tail = &run.list;
    *list_out = NULL;
    Err err = rt_dir_list(dir, list_one, &run, msg);
    if (err != OK) {
        wal__segments_free(run.list);
        return err;
    }
    *list_out = run.list;
    return OK;
}
