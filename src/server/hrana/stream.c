/*
 * stream.c -- the table of streams.
 */
#include "server/hrana/stream.h"

#include <string.h>

#include "rt/random.h"
#include "rt/time.h"
#include "server/auth.h"
#include "server/server__conn.h"

#define BUCKETS     1024u
#define REMEMBER_NS (300 * RT_NS_PER_S)
#define GONE_MAX    10000u

enum { STREAM_IDLE, STREAM_BUSY, STREAM_GONE };

typedef struct StreamTable {
    RtMutex lock; /* Protects all; taken alone. */
    Stream *bucket[BUCKETS];
    u32 count; /* Without those that are gone. */
    u32 gone;
} StreamTable;

Err
stream__init(Server *server)
{
    server->streams = MEM_NEW(StreamTable);
    return server->streams == NULL ? ERR_NOMEM : OK;
}

void
stream__free(Server *server)
{
    StreamTable *table = server->streams;
    if (table == NULL) return;
    ASSERT(table->count == 0);
    for (u32 i = 0; i < BUCKETS; i++) {
        while (table->bucket[i] != NULL) {
            Stream *stream = table->bucket[i];
            table->bucket[i] = stream->next;
            mem_free(stream);
        }
    }
    mem_free(table);
}

static Stream **
bucket_of(StreamTable *table, u64 id)
{
    return &table->bucket[id % BUCKETS];
}

static void
take_out(StreamTable *table, Stream *stream)
{
    Stream **link = bucket_of(table, stream->id);
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
}

Stream *
stream__open(ServedDb *db, SeatRights rights, const char *peer, Fault *fault)
{
    Server *server = db->server;
    StreamTable *table = server->streams;
    Stream *stream = MEM_NEW(Stream);
    if (stream != NULL) stream->seat = seat__open(db, "hrana", peer);
    if (stream == NULL || stream->seat == NULL) {
        mem_free(stream);
        fault__set(fault, 7, "SQLITE_NOMEM", "out of memory");
        return NULL;
    }
    stream->seat->rights = rights;
    stream->state = STREAM_BUSY;
    rt_random_bytes(&stream->id, sizeof(stream->id));
    rt_mutex_lock(&table->lock);
    bool full = table->count >= server->options.streams_max;
    if (!full) {
        stream->next = *bucket_of(table, stream->id);
        *bucket_of(table, stream->id) = stream;
        table->count++;
    }
    rt_mutex_unlock(&table->lock);
    if (!full) return stream;
    seat__close(stream->seat);
    mem_free(stream);
    fault__set(fault, 5, "LIMIT", "too many streams are open");
    return NULL;
}

/* ---- batons ---- */

static const char hex_digits[] = "0123456789abcdef";

void
stream__baton(Stream *stream, char baton_out[BATON_BYTES])
{
    u8 bytes[8 + sizeof(stream->secret)];
    rt_random_bytes(stream->secret, sizeof(stream->secret));
    memcpy(bytes, &stream->id, 8);
    memcpy(bytes + 8, stream->secret, sizeof(stream->secret));
    for (u32 i = 0; i < sizeof(bytes); i++) {
        baton_out[2 * i] = hex_digits[bytes[i] >> 4];
        baton_out[2 * i + 1] = hex_digits[bytes[i] & 15];
    }
}

static bool
baton_read(Slice baton, u8 bytes_out[24])
{
    if (baton.bytes != BATON_BYTES) return false;
    memset(bytes_out, 0, 24);
    for (u32 i = 0; i < BATON_BYTES; i++) {
        const char *digit = memchr(hex_digits, baton.p[i], 16);
        if (digit == NULL) return false;
        bytes_out[i / 2] = (u8)((u32)bytes_out[i / 2] << 4 | (u8)(digit - hex_digits));
    }
    return true;
}

static bool
same_rights(SeatRights a, SeatRights b)
{
    return a.read_only == b.read_only && a.one_database == b.one_database;
}

BatonResult
stream__find(Server *server, Slice baton, const ServedDb *db, SeatRights rights,
             Stream **stream_out)
{
    StreamTable *table = server->streams;
    u8 bytes[24];
    u64 id;
    BatonResult result = BATON_INVALID;
    *stream_out = NULL;
    if (!baton_read(baton, bytes)) return BATON_INVALID;
    memcpy(&id, bytes, sizeof(id));
    rt_mutex_lock(&table->lock);
    for (Stream *stream = *bucket_of(table, id); stream != NULL; stream = stream->next) {
        if (stream->id != id) continue;
        bool same = auth__same_secret(SLICE(bytes + 8, 16), SLICE(stream->secret, 16)) ||
                    PLANT(201);
        /* The housekeeper closes those that are late; until he comes they are no good either. */
        bool late = rt_now_ns() >= stream->expires_ns && !PLANT(210);
        if (stream->state == STREAM_GONE || (stream->state == STREAM_IDLE && late)) {
            result = same ? BATON_EXPIRED : BATON_INVALID;
        } else if ((stream->seat->db != db && !PLANT(213)) ||
                   !same_rights(stream->seat->rights, rights)) {
            result = BATON_INVALID;
        } else if (!same || stream->state == STREAM_BUSY) {
            result = BATON_USED;
        } else {
            stream->state = STREAM_BUSY;
            *stream_out = stream;
            result = BATON_OK;
        }
        break;
    }
    rt_mutex_unlock(&table->lock);
    return result;
}

/* ---- rest and end ---- */

void
stream__rest(Server *server, Stream *stream)
{
    StreamTable *table = server->streams;
    seat__rest(stream->seat);
    rt_mutex_lock(&table->lock);
    stream->state = STREAM_IDLE;
    stream->expires_ns = rt_deadline_after(server->options.stream_timeout_ns);
    rt_mutex_unlock(&table->lock);
}

static void
content_free(Stream *stream)
{
    seat__close(stream->seat);
    stream->seat = NULL;
    hrana__store_free(&stream->store);
}

void
stream__close(Server *server, Stream *stream)
{
    StreamTable *table = server->streams;
    rt_mutex_lock(&table->lock);
    take_out(table, stream);
    table->count--;
    rt_mutex_unlock(&table->lock);
    content_free(stream);
    mem_free(stream);
}

/* Under the lock: take expired ones out, onto a list. */
static Stream *
expired_take(StreamTable *table, u64 now_ns, bool all, bool (*killed)(Seat *))
{
    Stream *list = NULL;
    for (u32 i = 0; i < BUCKETS; i++) {
        Stream **link = &table->bucket[i];
        while (*link != NULL) {
            Stream *stream = *link;
            bool idle = stream->state != STREAM_BUSY;
            bool over = all || now_ns >= stream->expires_ns ||
                        (stream->state == STREAM_IDLE && killed(stream->seat));
            if (!idle || !over) {
                link = &stream->next;
                continue;
            }
            *link = stream->next;
            stream->next = list;
            list = stream;
            if (stream->state == STREAM_GONE)
                table->gone--;
            else
                table->count--;
        }
    }
    return list;
}

void
stream__expire(Server *server, u64 now_ns, bool all)
{
    StreamTable *table = server->streams;
    if (table == NULL) return;
    rt_mutex_lock(&table->lock);
    Stream *list = expired_take(table, now_ns, all, seat__is_killed);
    rt_mutex_unlock(&table->lock);
    while (list != NULL) {
        Stream *stream = list;
        list = stream->next;
        bool was_gone = stream->state == STREAM_GONE;
        if (!was_gone) {
            content_free(stream);
            server__count(server, COUNT_STREAMS_EXPIRED, 1);
        }
        if (was_gone || all || table->gone >= GONE_MAX) {
            mem_free(stream);
            continue;
        }
        rt_mutex_lock(&table->lock);
        stream->state = STREAM_GONE;
        stream->expires_ns = now_ns + REMEMBER_NS;
        stream->next = *bucket_of(table, stream->id);
        *bucket_of(table, stream->id) = stream;
        table->gone++;
        rt_mutex_unlock(&table->lock);
    }
}

u32
stream__count(Server *server)
{
    StreamTable *table = server->streams;
    rt_mutex_lock(&table->lock);
    u32 count = table->count;
    rt_mutex_unlock(&table->lock);
    return count;
}
