/*
 * stream.c -- the streams of a WebSocket: queues, tasks, cursors.
 */
#include <string.h>

#include "rt/loop.h"
#include "rt/task.h"
#include "server/ws/ws.h"

#define FETCH_BYTES_MAX ((size_t)1 << 20) /* One answer to fetch_cursor; the client asks again. */

void
ws__job_free(WsJob *job)
{
    if (job == NULL) return;
    server__release(job->server, job->held);
    arena_free(&job->arena);
    mem_free(job);
}

static WsStream *
stream_find(const Ws *ws, i32 id)
{
    WsStream *stream = ws->streams;
    while (stream != NULL && stream->id != id)
        stream = stream->next;
    return stream;
}

static WsCursor *
cursor_find(const Ws *ws, i32 id, WsStream **stream_out)
{
    for (*stream_out = ws->streams; *stream_out != NULL; *stream_out = (*stream_out)->next)
        for (WsCursor *cursor = (*stream_out)->cursors; cursor != NULL; cursor = cursor->next)
            if (cursor->id == id) return cursor;
    return NULL;
}

/* ---- cursors; on the stream's task ---- */

static void
cursor_free(WsCursor *cursor)
{
    if (cursor->open) hrana__cursor_close(&cursor->cursor);
    ws__job_free(cursor->job);
    mem_free(cursor);
}

static void
cursor_unlink(Ws *ws, WsStream *stream, WsCursor *cursor)
{
    rt_mutex_lock(&ws->lock);
    WsCursor **link = &stream->cursors;
    while (*link != cursor)
        link = &(*link)->next;
    *link = cursor->next;
    rt_mutex_unlock(&ws->lock);
}

/* True: the cursor has taken the job over. */
static bool
cursor_open(WsStream *stream, WsJob *job)
{
    Conn *conn = stream->conn;
    Ws *ws = conn->ws;
    WsStream *owner;
    Fault fault = {0};
    bool good;
    rt_mutex_lock(&ws->lock);
    WsCursor *cursor = cursor_find(ws, job->msg.request.cursor_id, &owner);
    bool another = false;
    for (WsCursor *other = stream->cursors; other != NULL; other = other->next)
        another |= other->open;
    rt_mutex_unlock(&ws->lock);
    ASSERT(cursor != NULL && owner == stream);
    if (another) {
        fault__set(&fault, 21, "CURSOR_NOT_OPEN", "the stream has a cursor already");
        ws__reply_error(conn, job->msg.request_id, &fault);
        fault__free(&fault);
        return false;
    }
    Err err = hrana__cursor_open(&cursor->cursor, stream->seat, &job->msg.request.batch, ws->is_pb,
                                 ws->version);
    if (err != OK) {
        fault__set(&fault, 7, "SQLITE_NOMEM", "out of memory");
        ws__reply_error(conn, job->msg.request_id, &fault);
        fault__free(&fault);
        return false;
    }
    cursor->open = true;
    cursor->job = job;
    ws__reply_ok(conn, job, stream->seat, &good);
    return true;
}

static void
cursor_fetch(WsStream *stream, const WsJob *job)
{
    Conn *conn = stream->conn;
    WsStream *owner;
    Buf entries = {0};
    Fault fault = {0};
    u32 count = 0;
    bool done = false;
    Err err = OK;
    rt_mutex_lock(&conn->ws->lock);
    WsCursor *cursor = cursor_find(conn->ws, job->msg.request.cursor_id, &owner);
    rt_mutex_unlock(&conn->ws->lock);
    if (cursor == NULL || !cursor->open) {
        fault__set(&fault, 21, "CURSOR_NOT_OPEN", "the cursor is not open");
        ws__reply_error(conn, job->msg.request_id, &fault);
        fault__free(&fault);
        return;
    }
    while (err == OK && !done && count < job->msg.request.max_count &&
           entries.bytes < FETCH_BYTES_MAX) {
        u64 length = 0;
        size_t mark = entries.bytes;
        err = buf_append(&entries, &length, sizeof(length));
        if (err == OK) err = hrana__cursor_next(&cursor->cursor, &entries, &done);
        length = entries.bytes - mark - sizeof(length);
        done = done || (PLANT(218) && count == 3);
        if (err == OK && !done) {
            memcpy(entries.p + mark, &length, sizeof(length));
            count++;
        }
    }
    if (err == OK)
        ws__reply_entries(conn, job, &entries, count, done);
    else
        ws__close(conn, 1011, "out of memory");
    buf_free(&entries);
}

static void
cursor_close(WsStream *stream, const WsJob *job)
{
    Conn *conn = stream->conn;
    WsStream *owner;
    bool good;
    rt_mutex_lock(&conn->ws->lock);
    WsCursor *cursor = cursor_find(conn->ws, job->msg.request.cursor_id, &owner);
    rt_mutex_unlock(&conn->ws->lock);
    if (cursor != NULL) {
        cursor_unlink(conn->ws, stream, cursor);
        cursor_free(cursor);
    }
    ws__reply_ok(conn, job, stream->seat, &good);
}

/* ---- a stream's task ---- */

/* Rolls back; the stream is taken out by the caller. */
static void
stream_release(WsStream *stream)
{
    while (stream->cursors != NULL) {
        WsCursor *cursor = stream->cursors;
        stream->cursors = cursor->next;
        cursor_free(cursor);
    }
    while (stream->first != NULL) {
        WsJob *job = stream->first;
        stream->first = job->next;
        ws__job_free(job);
    }
    seat__close(stream->seat);
    stream->seat = NULL;
}

static void
stream_unlink(Ws *ws, WsStream *stream)
{
    WsStream **link = &ws->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    ws->stream_count--;
}

static void
refuse_not_open(Conn *conn, const WsJob *job)
{
    Fault fault = {0};
    fault__set(&fault, 21, "STREAM_NOT_OPEN", "the stream is not open");
    ws__reply_error(conn, job->msg.request_id, &fault);
    fault__free(&fault);
}

/* Run one job.  True: somebody else owns it now. */
static bool
job_run(WsStream *stream, WsJob *job)
{
    Conn *conn = stream->conn;
    bool good, kept = false;
    if (stream->seat == NULL) {
        refuse_not_open(conn, job);
        return false;
    }
    seat__begin(stream->seat, conn->socket);
    rt_mutex_lock(&conn->ws->lock);
    bool ending = conn->ws->ending;
    rt_mutex_unlock(&conn->ws->lock);
    if (ending) (void)seat__interrupt(stream->seat, END_PEER);
    switch ((HranaKind)job->msg.request.kind) {
    case HRANA_OPEN_CURSOR: kept = cursor_open(stream, job); break;
    case HRANA_FETCH_CURSOR: cursor_fetch(stream, job); break;
    case HRANA_CLOSE_CURSOR: cursor_close(stream, job); break;
    default: ws__reply_ok(conn, job, stream->seat, &good); break;
    }
    seat__end(stream->seat);
    if (seat__is_killed(stream->seat)) rt_socket_shutdown(conn->socket);
    return kept;
}

/* The next job, or the end of the task. */
static WsJob *
job_take(Ws *ws, WsStream *stream)
{
    rt_mutex_lock(&ws->lock);
    WsJob *job = stream->first;
    if (job != NULL) {
        stream->first = job->next;
        if (stream->first == NULL) stream->last = NULL;
    }
    rt_mutex_unlock(&ws->lock);
    return job;
}

/* An answer was given. */
static void
answered(Ws *ws)
{
    rt_mutex_lock(&ws->lock);
    ws->pending--;
    if (ws->pending == WS_PENDING_MAX - 1) rt_cond_broadcast(&ws->changed, &ws->lock);
    rt_mutex_unlock(&ws->lock);
}

static void
stream_close(WsStream *stream, const WsJob *job)
{
    Conn *conn = stream->conn;
    Ws *ws = conn->ws;
    bool good;
    rt_mutex_lock(&ws->lock);
    stream_unlink(ws, stream); /* From here on nothing is queued any more. */
    rt_mutex_unlock(&ws->lock);
    for (WsJob *late = job_take(ws, stream); late != NULL; late = job_take(ws, stream)) {
        refuse_not_open(conn, late);
        ws__job_free(late);
        answered(ws);
    }
    stream_release(stream);
    ws__reply_ok(conn, job, NULL, &good);
}

/* Serve the queue until it is empty. */
static void
stream_task(void *arg)
{
    WsStream *stream = arg;
    Conn *conn = stream->conn;
    Ws *ws = conn->ws;
    bool closed = false;
    for (;;) {
        WsJob *job = job_take(ws, stream);
        if (job != NULL) {
            bool kept = false;
            closed = job->msg.request.kind == HRANA_CLOSE_STREAM;
            if (closed)
                stream_close(stream, job);
            else
                kept = job_run(stream, job);
            if (!kept) ws__job_free(job);
            answered(ws);
            if (!closed) continue;
        }
        if (!closed && stream->seat != NULL) seat__rest(stream->seat);
        ws__flush(conn);
        /* The connection's task may be waiting for a message that nobody will send. */
        if (ws__over(ws)) rt_socket_shutdown(conn->socket);
        rt_mutex_lock(&ws->lock);
        if (!closed && stream->first != NULL) { /* One came during the flush. */
            rt_mutex_unlock(&ws->lock);
            continue;
        }
        stream->running = false;
        ws->running--;
        if (closed && stream->thread != NULL) {
            stream->next = ws->gone;
            ws->gone = stream;
        } else if (closed) {
            mem_free(stream);
        }
        conn__busy(conn, -1);
        rt_cond_broadcast(&ws->changed, &ws->lock);
        rt_mutex_unlock(&ws->lock);
        return; /* The connection may be gone from here on. */
    }
}

/* ---- dispatch; on the connection's task ---- */

static Err
stream_open(Conn *conn, WsJob *job, HranaError *error)
{
    Ws *ws = conn->ws;
    Fault fault = {0};
    bool good;
    i32 id = job->msg.request.stream_id;
    rt_mutex_lock(&ws->lock);
    bool taken = stream_find(ws, id) != NULL, many = ws->stream_count >= WS_STREAMS_MAX;
    rt_mutex_unlock(&ws->lock);
    if (taken) return hrana__bad(error, false, "the stream %d is open already", id);
    WsStream *stream = MEM_NEW(WsStream);
    if (stream == NULL) return ERR_NOMEM;
    stream->conn = conn;
    stream->id = id;
    if (!many) stream->seat = seat__open(ws->db, "hrana ws", rt_socket_peer_address(conn->socket));
    if (stream->seat != NULL) {
        stream->seat->rights = ws->rights;
        stream->seat->home = conn->socket;
    }
    rt_mutex_lock(&ws->lock);
    stream->next = ws->streams;
    ws->streams = stream;
    ws->stream_count++;
    rt_mutex_unlock(&ws->lock);
    if (stream->seat != NULL) {
        ws__reply_ok(conn, job, stream->seat, &good);
        return OK;
    }
    fault__set(&fault, 5, many ? "LIMIT" : "SQLITE_NOMEM",
               many ? "too many streams are open" : "out of memory");
    ws__reply_error(conn, job->msg.request_id, &fault);
    fault__free(&fault);
    return OK;
}

static Err
sql_store(Conn *conn, WsJob *job, HranaError *error)
{
    Ws *ws = conn->ws;
    const HranaSql *sql = &job->msg.request.sql;
    Fault fault = {0};
    bool good;
    if (job->msg.request.kind == HRANA_CLOSE_SQL) {
        hrana__unstore(&ws->store, sql->id);
        ws__reply_ok(conn, job, NULL, &good);
        return OK;
    }
    if (hrana__stored(&ws->store, sql->id) != NULL)
        return hrana__bad(error, false, "an SQL text is stored as %d already", sql->id);
    if (ws->store.count >= WS_STORED_MAX) {
        fault__set(&fault, 21, "SQL_STORE_TOO_MANY", "Too many SQL texts are stored");
        ws__reply_error(conn, job->msg.request_id, &fault);
        fault__free(&fault);
        return OK;
    }
    Err err = hrana__store(&ws->store, sql->id, sql->text);
    if (err == OK) ws__reply_ok(conn, job, NULL, &good);
    return err;
}

/* The stream that a request goes to.  With the lock held. */
static Err
stream_of(Ws *ws, const HranaRequest *request, WsStream **stream_out, HranaError *error)
{
    bool by_cursor = request->kind == HRANA_FETCH_CURSOR || request->kind == HRANA_CLOSE_CURSOR;
    if (by_cursor) {
        if (cursor_find(ws, request->cursor_id, stream_out) != NULL) return OK;
        return hrana__bad(error, false, "there is no cursor %d", request->cursor_id);
    }
    *stream_out = stream_find(ws, request->stream_id);
    if (*stream_out == NULL)
        return hrana__bad(error, false, "there is no stream %d", request->stream_id);
    if (request->kind != HRANA_OPEN_CURSOR) return OK;
    WsStream *other;
    if (cursor_find(ws, request->cursor_id, &other) != NULL)
        return hrana__bad(error, false, "the cursor %d is open already", request->cursor_id);
    WsCursor *cursor = MEM_NEW(WsCursor);
    if (cursor == NULL) return ERR_NOMEM;
    cursor->id = request->cursor_id;
    cursor->next = (*stream_out)->cursors;
    (*stream_out)->cursors = cursor;
    return OK;
}

/* Join the threads of closed streams. */
static void
gone_bury(Ws *ws)
{
    rt_mutex_lock(&ws->lock);
    WsStream *stream = ws->gone;
    ws->gone = NULL;
    rt_mutex_unlock(&ws->lock);
    while (stream != NULL) {
        WsStream *next = stream->next;
        rt_thread_join(stream->thread);
        mem_free(stream);
        stream = next;
    }
}

/* A task for the stream: a fiber, without loops a thread.  Where none is to be had it runs here and
   now. */
static void
task_start(WsStream *stream)
{
    Ws *ws = stream->conn->ws;
    RtProcess *process = stream->conn->server->process;
    Err err;
    if (rt_loop_count() > 0) {
        err = rt_spawn(RT_LOOP_HERE, stream_task, stream, "hrana stream");
    } else {
        gone_bury(ws);
        rt_thread_join(stream->thread); /* It has said that it is over. */
        stream->thread = NULL;
        /* The handle must be there before the task can end. */
        rt_mutex_lock(&ws->lock);
        err = rt_thread_start(process, stream_task, stream, "hrana stream", &stream->thread);
        rt_mutex_unlock(&ws->lock);
    }
    if (err != OK) stream_task(stream);
}

static Err
enqueue(Conn *conn, WsJob *job, HranaError *error)
{
    Ws *ws = conn->ws;
    WsStream *stream = NULL;
    rt_mutex_lock(&ws->lock);
    Err err = stream_of(ws, &job->msg.request, &stream, error);
    if (err != OK) {
        rt_mutex_unlock(&ws->lock);
        return err;
    }
    job->next = NULL;
    if (stream->last != NULL)
        stream->last->next = job;
    else
        stream->first = job;
    stream->last = job;
    ws->pending++;
    bool starts = !stream->running;
    if (starts) {
        stream->running = true;
        ws->running++;
        conn__busy(conn, 1);
    }
    rt_mutex_unlock(&ws->lock);
    if (starts) task_start(stream);
    /* Whoever does not read answers sends no more requests. */
    rt_mutex_lock(&ws->lock);
    while (ws->pending >= WS_PENDING_MAX)
        rt_cond_wait(&ws->changed, &ws->lock);
    rt_mutex_unlock(&ws->lock);
    return OK;
}

Err
ws__dispatch(Conn *conn, WsJob *job, HranaError *error)
{
    Ws *ws = conn->ws;
    HranaRequest *request = &job->msg.request;
    Err err = hrana__check_request(request, ws->version, error);
    if (err == OK) err = hrana__resolve(request, &ws->store, &job->arena, error);
    if (err != OK) {
        ws__job_free(job);
        return err;
    }
    switch ((HranaKind)request->kind) {
    case HRANA_OPEN_STREAM: err = stream_open(conn, job, error); break;
    case HRANA_STORE_SQL:
    case HRANA_CLOSE_SQL: err = sql_store(conn, job, error); break;
    default:
        err = enqueue(conn, job, error);
        if (err == OK) return OK; /* The stream's task frees it. */
        break;
    }
    ws__job_free(job);
    return err;
}

bool
ws__in_transaction(const Ws *ws)
{
    for (const WsStream *stream = ws->streams; stream != NULL; stream = stream->next) {
        if (stream->seat != NULL && seat__in_transaction(stream->seat)) return true;
    }
    return false;
}

void
ws__streams_end(Conn *conn)
{
    Ws *ws = conn->ws;
    rt_mutex_lock(&ws->lock);
    ws->ending = true;
    for (WsStream *stream = ws->streams; stream != NULL; stream = stream->next) {
        /* What waits is not run any more. */
        while (stream->first != NULL) {
            WsJob *job = stream->first;
            stream->first = job->next;
            ws->pending--;
            ws__job_free(job);
        }
        stream->last = NULL;
        if (stream->seat != NULL) (void)seat__interrupt(stream->seat, END_PEER);
    }
    while (ws->running > 0)
        rt_cond_wait(&ws->changed, &ws->lock);
    rt_mutex_unlock(&ws->lock);
    gone_bury(ws);
    while (ws->streams != NULL) {
        WsStream *stream = ws->streams;
        ws->streams = stream->next;
        rt_thread_join(stream->thread);
        stream_release(stream);
        mem_free(stream);
    }
}
