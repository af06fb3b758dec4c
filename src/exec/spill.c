/*
 * spill.c -- the temporary file of a statement: blocks, runs, rows as bytes.
 *
 * Invariant: a unit of the file belongs to one block of one run, or is in the list of free units.
 */
#include "exec/spill.h"

#include "exec/exec__write.h"
#include "rt/file.h"
#include "rt/host.h"

#define BUDGET_MIN   ((u64)64 << 20) /* What nobody has set: a part of the memory there is, */
#define BUDGET_MAX   ((u64)256 << 20)
#define BUDGET_SHARE 64u
#define UNIT_BYTES   ((u32)32 << 10)
#define UNIT_MIN     256u /* With the tiny budgets of tests. */
#define WAYS_MIN     4u
#define WAYS_MAX     64u
#define HEAD_BYTES   16u /* Of a block: checksum u64, bytes u32, records u32. */
#define LENGTH_BYTES 4u  /* Before each record. */
#define RECORD_MAX   ((size_t)U32_MAX - 4096)
#define HAS_SUBTYPE  0xFFu /* In the place of a cell's type. */
#define BUFFER_KEEP  4u    /* Buffers larger than so many units go back after use. */

typedef struct SpillBlock {
    u32 unit;  /* Its first unit. */
    u32 bytes; /* With header. */
} SpillBlock;

/* ---- the budget ---- */

void
exec__spill_enlist(Exec *exec)
{
    Spill *spill = &exec->spill;
    spill->holders++;
    spill->share_bytes = spill->budget_bytes / spill->holders; /* Some are made at first use. */
}

void
exec__spill_start(Exec *exec)
{
    Spill *spill = &exec->spill;
    u64 budget = exec->env->memory_budget_bytes;
    if (budget == 0)
        budget = MIN_OF(MAX_OF(rt_memory_bytes() / BUDGET_SHARE, BUDGET_MIN), BUDGET_MAX);
    ASSERT(spill->file == NULL);
    spill->budget_bytes = budget;
    spill->share_bytes = budget / MAX_OF(spill->holders, 1u);
    spill->unit_bytes = (u32)MIN_OF(MAX_OF(budget / 256, (u64)UNIT_MIN), (u64)UNIT_BYTES);
    spill->budget_set = exec->env->memory_budget_bytes + 1;
}

u32
exec__spill_ways(const Exec *exec)
{
    u64 ways = exec->spill.share_bytes / 2 / exec->spill.unit_bytes;
    return (u32)MIN_OF(MAX_OF(ways, (u64)WAYS_MIN), (u64)WAYS_MAX);
}

/* ---- life ---- */

void
exec__spill_end(Exec *exec)
{
    Spill *spill = &exec->spill;
    if (spill->file == NULL) return;
    DCHECK(spill->free_count == spill->units); /* Else a run was forgotten. */
    rt_file_close(spill->file);
    spill->file = NULL;
    spill->units = 0;
    spill->free_count = 0;
}

void
exec__spill_close(Exec *exec)
{
    exec__spill_end(exec);
    mem_free(exec->spill.free_unit);
    err_clear(&exec->spill.why);
    exec->spill.free_unit = NULL;
    exec->spill.free_capacity = 0;
}

static Err
file_ready(Exec *exec)
{
    Spill *spill = &exec->spill;
    if (spill->file != NULL) return OK;
    REACHED("exec: spilled to a temporary file");
    return rt_file_open_temp(exec->env->spill_dir, &spill->file, &spill->why);
}

/* ---- units ---- */

static u32
units_of(const Spill *spill, u32 bytes)
{
    return bytes / spill->unit_bytes + (bytes % spill->unit_bytes != 0);
}

/* Room in the list for every unit there is, so that giving back cannot fail. */
static Err
free_reserve(Spill *spill, u32 units)
{
    if (units <= spill->free_capacity) return OK;
    u32 capacity = MAX_OF(spill->free_capacity * 2, MAX_OF(units, 64u));
    u32 *bigger = mem_realloc(spill->free_unit, (size_t)capacity * sizeof(u32));
    if (bigger == NULL) return ERR_NOMEM;
    spill->free_unit = bigger;
    spill->free_capacity = capacity;
    return OK;
}

static Err
units_take(Spill *spill, u32 count, u32 *unit_out)
{
    if (count == 1 && spill->free_count > 0) {
        *unit_out = spill->free_unit[--spill->free_count];
        return OK;
    }
    if (count > U32_MAX / 2 - spill->units) return ERR_FULL;
    Err err = free_reserve(spill, spill->units + count);
    if (err != OK) return err;
    *unit_out = spill->units;
    spill->units += count;
    return OK;
}

static void
block_give_back(Spill *spill, SpillBlock *block)
{
    u32 count = units_of(spill, block->bytes);
    for (u32 i = 0; i < count; i++) {
        ASSERT(spill->free_count < spill->units);
        spill->free_unit[spill->free_count++] = block->unit + i;
    }
    block->bytes = 0;
}

/* ---- buffers ---- */

/* Room for `bytes` in all, charged to the statement. */
static Err
buffer_reserve(Exec *exec, Buf *buf, size_t bytes)
{
    if (bytes <= buf->capacity) return OK;
    size_t before = buf->capacity;
    MemAccount *account = exec->account;
    Err err = buf_reserve(buf, bytes - buf->bytes);
    if (err != OK || account == NULL) return err;
    err = mem_account_charge(account, buf->capacity - before);
    if (err == OK) return OK;
    mem_account_release(account, before);
    buf_free(buf); /* Uncharged memory is not kept. */
    return err;
}

static void
buffer_free(Exec *exec, Buf *buf)
{
    if (exec->account != NULL) mem_account_release(exec->account, buf->capacity);
    buf_free(buf);
}

/* ---- writing ---- */

static Err
run_grow(SpillRun *run)
{
    if (run->blocks < run->capacity) return OK;
    u32 capacity = MAX_OF(run->capacity * 2, 8u);
    SpillBlock *bigger = mem_realloc(run->block, (size_t)capacity * sizeof(SpillBlock));
    if (bigger == NULL) return ERR_NOMEM;
    run->block = bigger;
    run->capacity = capacity;
    return OK;
}

Err
exec__run_flush(Exec *exec, SpillWriter *writer)
{
    Spill *spill = &exec->spill;
    Buf *buf = &writer->buf;
    if (writer->records == 0) return OK;
    SpillBlock block = {.bytes = (u32)buf->bytes};
    Err err = file_ready(exec);
    if (err == OK) err = run_grow(writer->run);
    if (err == OK) err = units_take(spill, units_of(spill, block.bytes), &block.unit);
    if (err != OK) return err;
    store_u32(buf->p + 8, block.bytes);
    store_u32(buf->p + 12, writer->records);
    store_u64(buf->p, checksum64(buf->p + 8, buf->bytes - 8, block.unit));
    u64 offset = (u64)block.unit * spill->unit_bytes;
    err = rt_file_write(spill->file, offset, buf->p, buf->bytes, &spill->why);
    if (err != OK) {
        block_give_back(spill, &block);
        return err;
    }
    spill->written_bytes += block.bytes;
    writer->run->block[writer->run->blocks++] = block;
    writer->records = 0;
    buf->bytes = 0;
    if (buf->capacity > (size_t)BUFFER_KEEP * spill->unit_bytes) buffer_free(exec, buf);
    return OK;
}

Err
exec__run_add(Exec *exec, SpillWriter *writer, Slice head, Slice tail)
{
    Buf *buf = &writer->buf;
    u32 unit = exec->spill.unit_bytes;
    if (head.bytes > RECORD_MAX || tail.bytes > RECORD_MAX - head.bytes) return ERR_TOOBIG;
    size_t bytes = LENGTH_BYTES + head.bytes + tail.bytes;
    Err err = OK;
    if (writer->records > 0 && buf->bytes + bytes > unit) err = exec__run_flush(exec, writer);
    if (err == OK) err = buffer_reserve(exec, buf, MAX_OF(HEAD_BYTES + bytes, (size_t)unit));
    if (err != OK) return err;
    if (writer->records == 0) buf->bytes = HEAD_BYTES;
    u8 *to = buf->p + buf->bytes;
    store_u32(to, (u32)(head.bytes + tail.bytes));
    if (head.bytes > 0) memcpy(to + LENGTH_BYTES, head.p, head.bytes);
    if (tail.bytes > 0) memcpy(to + LENGTH_BYTES + head.bytes, tail.p, tail.bytes);
    buf->bytes += bytes;
    writer->records++;
    writer->run->records++;
    return OK;
}

void
exec__writer_free(Exec *exec, SpillWriter *writer)
{
    buffer_free(exec, &writer->buf);
    *writer = (SpillWriter){0};
}

void
exec__run_drop(Exec *exec, SpillRun *run)
{
    for (u32 i = 0; i < run->blocks; i++) {
        block_give_back(&exec->spill, &run->block[i]);
    }
    run->blocks = 0;
    run->records = 0;
}

void
exec__run_free(Exec *exec, SpillRun *run)
{
    exec__run_drop(exec, run);
    mem_free(run->block);
    *run = (SpillRun){0};
}

/* ---- reading ---- */

void
exec__reader_start(SpillReader *reader, SpillRun *run, u32 first)
{
    reader->run = run;
    reader->next = first;
    reader->left = 0;
}

static Err
damaged(Exec *exec, const SpillBlock *block)
{
    return err_set(&exec->spill.why, ERR_IO_READ, "temporary file is damaged at offset %llu",
                   (unsigned long long)block->unit * exec->spill.unit_bytes);
}

static Err
block_read(Exec *exec, SpillReader *reader)
{
    Spill *spill = &exec->spill;
    SpillBlock *block = &reader->run->block[reader->next];
    Buf *buf = &reader->buf;
    buf->bytes = 0;
    bool large = buf->capacity > (size_t)BUFFER_KEEP * spill->unit_bytes;
    if (large && block->bytes <= spill->unit_bytes) buffer_free(exec, buf);
    Err err = buffer_reserve(exec, buf, block->bytes);
    if (err != OK) return err;
    u64 offset = (u64)block->unit * spill->unit_bytes;
    err = rt_file_read_exact(spill->file, offset, buf->p, block->bytes, &spill->why);
    if (err != OK) return err;
    buf->bytes = block->bytes;
    u64 sum = checksum64(buf->p + 8, buf->bytes - 8, block->unit);
    if (load_u64(buf->p) != sum || load_u32(buf->p + 8) != block->bytes) {
        return damaged(exec, block);
    }
    reader->left = load_u32(buf->p + 12);
    reader->at = HEAD_BYTES;
    reader->next++;
    if (reader->consumes) block_give_back(spill, block);
    return OK;
}

Err
exec__reader_next(Exec *exec, SpillReader *reader, Slice *record_out, bool *found_out)
{
    *found_out = false;
    if (reader->left == 0) {
        if (reader->run == NULL || reader->next == reader->run->blocks) return OK;
        Err err = block_read(exec, reader);
        if (err != OK) return err;
    }
    const Buf *buf = &reader->buf;
    u32 bytes = load_u32(buf->p + reader->at);
    ASSERT(bytes <= buf->bytes - reader->at - LENGTH_BYTES); /* The checksum was right. */
    *record_out = (Slice){buf->p + reader->at + LENGTH_BYTES, bytes};
    reader->at += LENGTH_BYTES + bytes;
    reader->left--;
    *found_out = true;
    return OK;
}

void
exec__reader_again(SpillReader *reader)
{
    ASSERT(reader->buf.bytes >= HEAD_BYTES);
    reader->left = load_u32(reader->buf.p + 12);
    reader->at = HEAD_BYTES;
}

void
exec__reader_back(SpillReader *reader, Slice record)
{
    ASSERT(reader->at >= HEAD_BYTES + LENGTH_BYTES + record.bytes);
    reader->at -= LENGTH_BYTES + record.bytes;
    reader->left++;
}

void
exec__reader_free(Exec *exec, SpillReader *reader)
{
    buffer_free(exec, &reader->buf);
    *reader = (SpillReader){0};
}

/* ---- rows as bytes ---- */

/* A cell is perhaps a subtype, then its type and flags, then 8 bytes of a number, or a length and
   the bytes of a text with a NUL behind them, or a reference. */
static Err
cell_encode(Buf *buf, const Cell *cell)
{
    u8 head[14] = {cell->type, cell->flags};
    bool bytes = cell->type == CELL_TEXT || cell->type == CELL_BLOB;
    if (cell->subtype != 0) {
        u8 mark[2] = {HAS_SUBTYPE, cell->subtype};
        Err err = buf_append(buf, mark, 2);
        if (err != OK) return err;
    }
    if (!bytes && cell->type == CELL_NULL && cell->flags == 0) return buf_append(buf, head, 2);
    if (!bytes) {
        memcpy(head + 2, &cell->u, 8);
        return buf_append(buf, head, 10);
    }
    store_u32(head + 2, cell->bytes);
    if (cell->flags & CELL_ZEROBLOB) return buf_append(buf, head, 6);
    bool by_ref = (cell->flags & CELL_BY_REF) != 0;
    if (cell->type == CELL_TEXT && !by_ref) head[1] |= CELL_TERMINATED;
    Err err = buf_append(buf, head, 6);
    if (err != OK) return err;
    if (by_ref) return buf_append(buf, cell->u.ref, sizeof(LongRef));
    err = buf_append(buf, cell->u.p, cell->bytes);
    return err == OK ? buf_append_byte(buf, 0) : err;
}

Err
exec__cells_encode(Buf *buf, const Cell *cell, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        Err err = cell_encode(buf, &cell[i]);
        if (err != OK) return err;
    }
    return OK;
}

Slice
exec__cells_decode(Slice bytes, Cell *cell, u32 count)
{
    const u8 *p = bytes.p;
    for (u32 i = 0; i < count; i++) {
        Cell *to = &cell[i];
        u8 subtype = 0;
        if (UNLIKELY(p[0] == HAS_SUBTYPE)) {
            subtype = p[1];
            p += 2;
        }
        *to = (Cell){.subtype = subtype, .type = p[0], .flags = p[1]};
        p += 2;
        if (to->type != CELL_TEXT && to->type != CELL_BLOB) {
            if (to->type == CELL_NULL && to->flags == 0) continue;
            memcpy(&to->u, p, 8);
            p += 8;
            continue;
        }
        to->bytes = load_u32(p);
        p += 4;
        if (to->flags & CELL_ZEROBLOB) continue;
        if (to->flags & CELL_BY_REF) {
            to->u.ref = (const LongRef *)p;
            p += sizeof(LongRef);
        } else {
            to->u.p = p;
            p += (size_t)to->bytes + 1;
        }
    }
    ASSERT(p <= bytes.p + bytes.bytes);
    return (Slice){p, bytes.bytes - (size_t)(p - bytes.p)};
}
