/*
 * read.c -- opening a SQLite file, its header, and its pages one by one.
 */
#include <stdarg.h>
#include <stdio.h>

#include "sqlitefile/read__impl.h"

Err
sqf__source_read(const SqfSource *source, u64 offset, void *bytes, size_t count, ErrMsg *msg)
{
    size_t got = 0;
    Err err = source->read(source->arg, offset, bytes, count, &got, msg);
    if (err != OK) return err;
    if (got < count) return err_set(msg, ERR_IO_SHORT_READ, NULL);
    return OK;
}

static Err
memory_read(void *arg, u64 offset, void *bytes, size_t count, size_t *got_out, ErrMsg *msg)
{
    const Slice *memory = arg;
    (void)msg;
    *got_out = offset >= memory->bytes ? 0 : MIN_OF(count, memory->bytes - (size_t)offset);
    if (*got_out > 0) memcpy(bytes, memory->p + offset, *got_out);
    return OK;
}

SqfSource
sqf_source_memory(const Slice *bytes)
{
    return (SqfSource){(void *)(uintptr_t)bytes, memory_read, bytes->bytes};
}

Err
sqf__damage(Sqf *sqf, ErrMsg *msg, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!sqf->open.salvage) return err_set(msg, ERR_CORRUPT, "%s: %s", sqf->name, text);
    sqf->findings++;
    if (sqf->open.finding != NULL) sqf->open.finding(sqf->open.finding_arg, text);
    return OK;
}

/* ---- the header ---- */

static bool
is_page_size(u32 bytes)
{
    return bytes >= SQF_PAGE_BYTES_MIN && bytes <= SQF_PAGE_BYTES_MAX && (bytes & (bytes - 1)) == 0;
}

/* What must be known before any page can be read. */
static Err
header_first(Sqf *sqf, const u8 *header, size_t bytes, ErrMsg *msg)
{
    SqfInfo *info = &sqf->info;
    if (bytes < SQF_HEADER_BYTES || memcmp(header, SQF_MAGIC, SQF_MAGIC_BYTES) != 0) {
        return err_set(msg, ERR_NOTADB, "%s is not a SQLite database", sqf->name);
    }
    u32 page_bytes = sqf_be16(header + SQF_AT_PAGE_BYTES);
    info->page_bytes = page_bytes == 1 ? SQF_PAGE_BYTES_MAX : page_bytes;
    if (!is_page_size(info->page_bytes)) {
        return err_set(msg, ERR_NOTADB, "%s: its header says pages of %u bytes, which cannot be",
                       sqf->name, page_bytes);
    }
    info->usable_bytes = info->page_bytes - header[SQF_AT_RESERVED];
    if (info->usable_bytes < SQF_USABLE_MIN) {
        return err_set(msg, ERR_NOTADB,
                       "%s: its header reserves %u bytes a page, which is too many", sqf->name,
                       header[SQF_AT_RESERVED]);
    }
    info->write_version = header[SQF_AT_WRITE_VERSION];
    info->read_version = header[SQF_AT_READ_VERSION];
    if (info->read_version > 2) {
        return err_set(msg, ERR_VERSION, "%s: written by a newer SQLite (read version %u)",
                       sqf->name, info->read_version);
    }
    return OK;
}

static Err
header_rest(Sqf *sqf, const u8 *header, u32 overlay_pages, ErrMsg *msg)
{
    SqfInfo *info = &sqf->info;
    info->change_counter = load_be32(header + SQF_AT_CHANGE_COUNTER);
    info->free_first = load_be32(header + SQF_AT_FREE_FIRST);
    info->free_pages = load_be32(header + SQF_AT_FREE_COUNT);
    info->schema_cookie = load_be32(header + SQF_AT_SCHEMA_COOKIE);
    info->schema_format = load_be32(header + SQF_AT_SCHEMA_FORMAT);
    info->cache_size = (i32)load_be32(header + SQF_AT_CACHE_SIZE);
    info->largest_root = load_be32(header + SQF_AT_LARGEST_ROOT);
    info->user_version = (i32)load_be32(header + SQF_AT_USER_VERSION);
    info->application_id = (i32)load_be32(header + SQF_AT_APPLICATION_ID);
    info->library_version = load_be32(header + SQF_AT_LIBRARY_VERSION);
    bool incremental = load_be32(header + SQF_AT_INCREMENTAL) != 0;
    info->vacuum = info->largest_root == 0 ? SQF_VACUUM_NONE
                   : incremental           ? SQF_VACUUM_INCREMENTAL
                                           : SQF_VACUUM_FULL;
    u32 encoding = load_be32(header + SQF_AT_ENCODING);
    if (encoding > SQF_UTF16BE || info->schema_format > 4) {
        return err_set(msg, ERR_CORRUPT, "%s: its header names %s %u, which does not exist",
                       sqf->name, encoding > SQF_UTF16BE ? "text encoding" : "schema format",
                       encoding > SQF_UTF16BE ? encoding : info->schema_format);
    }
    info->encoding = encoding == 0 ? SQF_UTF8 : (SqfEncoding)encoding;
    u64 in_file = sqf->open.database.size_bytes / info->page_bytes;
    u32 in_header = load_be32(header + SQF_AT_PAGES);
    bool valid = in_header != 0 && load_be32(header + SQF_AT_VALID_FOR) == info->change_counter;
    if (overlay_pages != 0)
        info->pages = overlay_pages;
    else if (valid)
        info->pages = in_header;
    else
        info->pages = (u32)MIN_OF(in_file, (u64)U32_MAX);
    /* A page beyond the end of the file cannot be read; so more are not needed in the bit map. With
       a log or journal there may be more, as many as its checksums vouch for. */
    if (overlay_pages != 0 || info->pages <= in_file) return OK;
    info->pages = (u32)in_file;
    return sqf__damage(sqf, msg, "the file has %u pages, its header says %u: the end is missing",
                       (u32)in_file, in_header);
}

/* A file of no bytes is a database without tables. */
static void
empty_database(Sqf *sqf)
{
    sqf->info = (SqfInfo){.page_bytes = 4096,
                          .usable_bytes = 4096,
                          .encoding = SQF_UTF8,
                          .read_version = 1,
                          .write_version = 1,
                          .schema_format = 4};
}

static Err
open_pages(Sqf *sqf, ErrMsg *msg)
{
    u8 header[SQF_HEADER_BYTES];
    size_t got = 0;
    u32 overlay_pages = 0;
    const SqfSource *database = &sqf->open.database;
    Err err = database->read(database->arg, 0, header, sizeof(header), &got, msg);
    if (err == OK) err = header_first(sqf, header, got, msg);
    if (err != OK) return err;
    if (sqf->info.read_version == 2 && sqf->open.wal.read != NULL)
        err = sqf__wal_open(sqf, &overlay_pages, msg);
    else if (sqf->info.read_version == 1 && sqf->open.journal.read != NULL)
        err = sqf__journal_open(sqf, &overlay_pages, msg);
    if (err != OK) return err;
    memcpy(sqf->header_at_open, header, sizeof(header));
    sqf->ahead = mem_alloc(SQF_AHEAD_BYTES);
    u8 *page = mem_alloc(sqf->info.page_bytes);
    if (page == NULL || sqf->ahead == NULL) {
        mem_free(page);
        return err_set(msg, ERR_NOMEM, NULL);
    }
    sqf->info.pages = 1; /* Enough to read the first. */
    err = sqf_read_page(sqf, 1, page, msg);
    if (err == OK) err = header_rest(sqf, page, overlay_pages, msg);
    mem_free(page);
    return err;
}

Err
sqf_open(const SqfOpen *open, Sqf **sqf_out, ErrMsg *msg)
{
    *sqf_out = NULL;
    Sqf *sqf = MEM_NEW(Sqf);
    if (sqf == NULL) return err_set(msg, ERR_NOMEM, NULL);
    sqf->open = *open;
    sqf->name = mem_strdup(open->name);
    Err err = sqf->name != NULL ? OK : err_set(msg, ERR_NOMEM, NULL);
    if (err == OK && open->database.size_bytes == 0)
        empty_database(sqf);
    else if (err == OK)
        err = open_pages(sqf, msg);
    if (err == OK) {
        sqf->used = MEM_NEW_ARRAY(u64, (size_t)sqf->info.pages / 64 + 1);
        sqf->chain_page = mem_alloc(sqf->info.page_bytes);
        if (sqf->used == NULL || sqf->chain_page == NULL) err = err_set(msg, ERR_NOMEM, NULL);
    }
    if (err != OK) {
        sqf_close(sqf);
        return err;
    }
    *sqf_out = sqf;
    return OK;
}

void
sqf_close(Sqf *sqf)
{
    if (sqf == NULL) return;
    for (u32 i = 0; i < SQF_DEPTH_MAX; i++)
        mem_free(sqf->level[i]);
    sqf__overlay_free(&sqf->overlay);
    buf_free(&sqf->payload);
    mem_free(sqf->chain_page);
    mem_free(sqf->ahead);
    mem_free(sqf->used);
    mem_free(sqf->name);
    rt_file_close(sqf->file);
    rt_file_close(sqf->wal_file);
    rt_file_close(sqf->journal_file);
    mem_free(sqf);
}

const SqfInfo *
sqf_info(const Sqf *sqf)
{
    return &sqf->info;
}

u32
sqf_pages_read(const Sqf *sqf)
{
    return sqf->pages_read;
}

u64
sqf_findings(const Sqf *sqf)
{
    return sqf->findings;
}

/* ---- pages ---- */

/* Pages are mostly asked for in order: then a run of them is read at once. */
static Err
file_page(Sqf *sqf, u32 page, u8 *bytes, ErrMsg *msg)
{
    const SqfSource *database = &sqf->open.database;
    u32 page_bytes = sqf->info.page_bytes;
    bool in_order = page == sqf->last_read + 1;
    sqf->last_read = page;
    if (page - sqf->ahead_first >= sqf->ahead_pages || page < sqf->ahead_first) {
        size_t want = in_order ? SQF_AHEAD_BYTES : page_bytes, got;
        sqf->ahead_pages = 0;
        Err err = database->read(database->arg, (u64)(page - 1) * page_bytes, sqf->ahead, want,
                                 &got, msg);
        if (err != OK) return err;
        sqf->ahead_first = page;
        sqf->ahead_pages = (u32)(got / page_bytes);
    }
    if (sqf->ahead_pages == 0) {
        return err_set(msg, ERR_CORRUPT, "%s: page %u lies beyond the end of the file", sqf->name,
                       page);
    }
    memcpy(bytes, sqf->ahead + (size_t)(page - sqf->ahead_first) * page_bytes, page_bytes);
    return OK;
}

Err
sqf_read_page(Sqf *sqf, u32 page, u8 *bytes, ErrMsg *msg)
{
    if (page == 0 || page > sqf->info.pages) {
        return err_set(msg, ERR_CORRUPT, "%s: there is no page %u (the database has %u)", sqf->name,
                       page, sqf->info.pages);
    }
    const SqfPlace *place = sqf__overlay_find(&sqf->overlay, page);
    if (place == NULL) return file_page(sqf, page, bytes, msg);
    const SqfSource *from = sqf->overlay.is_wal ? &sqf->open.wal : &sqf->open.journal;
    return sqf__source_read(from, place->offset, bytes, sqf->info.page_bytes, msg);
}

/* ---- a file on disk ---- */

static Err
disk_read(void *arg, u64 offset, void *bytes, size_t count, size_t *got_out, ErrMsg *msg)
{
    return rt_file_read(arg, offset, bytes, count, got_out, msg);
}

static Err
disk_source(RtFile *file, SqfSource *source_out, ErrMsg *msg)
{
    source_out->arg = file;
    source_out->read = disk_read;
    return rt_file_size(file, &source_out->size_bytes, msg);
}

/* Open PATH and a suffix if there is such a file. */
static Err
beside_open(const char *path, const char *suffix, RtFile **file_out, SqfSource *source_out,
            ErrMsg *msg)
{
    char *name = mem_alloc(strlen(path) + strlen(suffix) + 1);
    if (name == NULL) return err_set(msg, ERR_NOMEM, NULL);
    memcpy(name, path, strlen(path));
    memcpy(name + strlen(path), suffix, strlen(suffix) + 1);
    Err err = rt_file_open(NULL, name, RT_FILE_READ, file_out, msg);
    mem_free(name);
    if (err == ERR_NOTFOUND) {
        err_clear(msg);
        return OK;
    }
    return err == OK ? disk_source(*file_out, source_out, msg) : err;
}

/* A journal that belongs to a transaction over several files names their common journal at its end;
   when that is gone the transaction was committed. */
static Err
journal_is_over(const SqfSource *journal, bool *over_out, ErrMsg *msg)
{
    static const u8 magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    u8 tail[16];
    char name[1025];
    u32 sum = 0;
    RtStat stat;
    *over_out = false;
    if (journal->size_bytes < 32) return OK;
    Err err = sqf__source_read(journal, journal->size_bytes - 16, tail, 16, msg);
    if (err != OK || memcmp(tail + 8, magic, 8) != 0) return err;
    u32 bytes = load_be32(tail);
    if (bytes == 0 || bytes > 1024 || bytes + 20u > journal->size_bytes) return OK;
    err = sqf__source_read(journal, journal->size_bytes - 16 - bytes, name, bytes, msg);
    if (err != OK) return err;
    name[bytes] = 0;
    for (u32 i = 0; i < bytes; i++)
        sum += (u8)name[i] < 0x80 ? (u8)name[i] : (u8)name[i] | 0xffffff00u; /* Signed bytes. */
    if (sum != load_be32(tail + 4)) return OK;
    err = rt_file_stat(NULL, name, &stat, msg);
    *over_out = err == ERR_NOTFOUND;
    if (*over_out) err_clear(msg);
    return *over_out ? OK : err;
}

/* Remember how the files look, to notice when somebody writes to them. */
static Err
remember(Sqf *sqf, const char *path, ErrMsg *msg)
{
    Err err = rt_file_stat(NULL, path, &sqf->at_open, msg);
    if (err == OK && sqf->wal_file != NULL)
        err = rt_file_stat(NULL, rt_file_name(sqf->wal_file), &sqf->wal_at_open, msg);
    return err;
}

Err
sqf_open_file(const char *path, bool salvage, void (*finding)(void *arg, const char *text),
              void *finding_arg, Sqf **sqf_out, ErrMsg *msg)
{
    SqfOpen open = {
        .name = path, .salvage = salvage, .finding = finding, .finding_arg = finding_arg};
    RtFile *file = NULL, *wal = NULL, *journal = NULL;
    bool over = false;
    *sqf_out = NULL;
    Err err = rt_file_open(NULL, path, RT_FILE_READ, &file, msg);
    if (err == OK) err = disk_source(file, &open.database, msg);
    if (err == OK) err = beside_open(path, "-wal", &wal, &open.wal, msg);
    if (err == OK) err = beside_open(path, "-journal", &journal, &open.journal, msg);
    if (err == OK && journal != NULL) err = journal_is_over(&open.journal, &over, msg);
    if (over) open.journal.read = NULL;
    if (err == OK) err = sqf_open(&open, sqf_out, msg);
    if (err != OK) {
        rt_file_close(file);
        rt_file_close(wal);
        rt_file_close(journal);
        return err;
    }
    Sqf *sqf = *sqf_out;
    sqf->file = file;
    sqf->wal_file = wal;
    sqf->journal_file = journal;
    err = remember(sqf, path, msg);
    if (err == OK) return OK;
    sqf_close(sqf);
    *sqf_out = NULL;
    return err;
}

static bool
same_stat(const RtStat *a, const RtStat *b)
{
    return a->size_bytes == b->size_bytes && a->modified_ns == b->modified_ns &&
           a->id.inode == b->id.inode && a->id.device == b->id.device;
}

Err
sqf_unchanged(Sqf *sqf, ErrMsg *msg)
{
    RtStat now = {0}, wal_now = {0};
    if (sqf->file == NULL) return OK;
    Err err = rt_file_stat(NULL, sqf->name, &now, msg);
    if (err == OK && sqf->wal_file != NULL)
        err = rt_file_stat(NULL, rt_file_name(sqf->wal_file), &wal_now, msg);
    if (err != OK && err != ERR_NOTFOUND) return err;
    /* The header too: a change between the first read and the first stat would go unseen. */
    u8 header[SQF_HEADER_BYTES] = {0};
    size_t got = 0;
    if (err == OK) err = rt_file_read(sqf->file, 0, header, sizeof(header), &got, msg);
    if (err != OK && err != ERR_NOTFOUND) return err;
    bool same_header = memcmp(header, sqf->header_at_open, sizeof(header)) == 0;
    if (err == OK && same_header && same_stat(&now, &sqf->at_open) &&
        (sqf->wal_file == NULL || same_stat(&wal_now, &sqf->wal_at_open)))
        return OK;
    err_clear(msg);
    return err_set(msg, ERR_BUSY,
                   "%s was changed by another program while it was read; end that program, or "
                   "copy the database with its backup command, and try again",
                   sqf->name);
}
