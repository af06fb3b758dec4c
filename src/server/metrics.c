/*
 * metrics.c -- /metrics in Prometheus' text format.
 */
#include <stdio.h>

#include "rt/host.h"
#include "rt/time.h"
#include "server/hrana/stream.h"
#include "server/http/route.h"

static const struct {
    const char *name, *help;
} counters[COUNTERS] = {
    [COUNT_CONNECTIONS] = {"connections_total", "Connections accepted"},
    [COUNT_REFUSED] = {"connections_refused_total", "Connections refused"},
    [COUNT_REQUESTS] = {"requests_total", "Requests of all protocols"},
    [COUNT_ERRORS] = {"errors_total", "Requests and statements that failed"},
    [COUNT_ROWS] = {"rows_total", "Rows sent"},
    [COUNT_BYTES_IN] = {"received_bytes_total", "Bytes received"},
    [COUNT_BYTES_OUT] = {"sent_bytes_total", "Bytes sent"},
    [COUNT_AUTH_FAILED] = {"auth_failures_total", "Tokens refused"},
    [COUNT_SLOW] = {"slow_statements_total", "Statements slower than the limit of the log"},
    [COUNT_STALE] = {"stale_transactions_total",
                     "Idle transactions rolled back because somebody waited"},
    [COUNT_TIMEOUTS] = {"statement_timeouts_total", "Statements ended by the time limit"},
    [COUNT_STREAMS_EXPIRED] = {"streams_expired_total", "Hrana streams that nobody came back for"},
    [COUNT_QUACK] = {"quack_connections_total", "Connections that spoke Quack"},
    [COUNT_HTTP] = {"http_requests_total", "HTTP requests"},
    [COUNT_WEBSOCKET] = {"websockets_total", "WebSockets opened"},
    [COUNT_TLS] = {"tls_connections_total", "TLS connections"},
};

static const char *const kinds[STMT_KIND_COUNT_] = {
    [STMT_KIND_SELECT] = "select",   [STMT_KIND_INSERT] = "insert",
    [STMT_KIND_UPDATE] = "update",   [STMT_KIND_DELETE] = "delete",
    [STMT_KIND_SCHEMA] = "schema",   [STMT_KIND_BEGIN] = "begin",
    [STMT_KIND_END] = "end",         [STMT_KIND_SAVEPOINT] = "savepoint",
    [STMT_KIND_SETTING] = "setting", [STMT_KIND_FILE] = "file",
};

static Err
gauge(Buf *out, const char *name, const char *help, u64 value)
{
    return buf_printf(out, "# HELP weft_%s %s\n# TYPE weft_%s gauge\nweft_%s %llu\n", name, help,
                      name, name, (unsigned long long)value);
}

static Err
counters_write(Server *server, Buf *out)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < COUNTERS; i++)
        err = buf_printf(out, "# HELP weft_%s %s\n# TYPE weft_%s counter\nweft_%s %llu\n",
                         counters[i].name, counters[i].help, counters[i].name, counters[i].name,
                         (unsigned long long)rt_load_relaxed(&server->count[i]));
    return err;
}

/* The upper end of a bucket in microseconds: two an octave. */
static u64
bucket_end_us(u32 bucket)
{
    if (bucket == 0) return 1;
    u32 octave = (bucket - 1) / 2, half = (bucket - 1) & 1;
    u64 low = (u64)1 << octave;
    return half == 0 ? low + (octave > 0 ? low / 2 : 1) : 2 * low;
}

static Err
histogram_write(const Histogram *histogram, const char *kind, Buf *out)
{
    u64 count = 0;
    Err err = OK;
    for (u32 i = 0; err == OK && i < HISTOGRAM_BUCKETS; i++) {
        u64 us = bucket_end_us(i);
        count += rt_load_relaxed(&histogram->bucket[i]);
        if (i == HISTOGRAM_BUCKETS - 1) break;
        err = buf_printf(out,
                         "weft_statement_seconds_bucket{kind=\"%s\",le=\"%llu.%06llu\"} %llu\n",
                         kind, (unsigned long long)(us / 1000000),
                         (unsigned long long)(us % 1000000), (unsigned long long)count);
    }
    u64 sum_us = rt_load_relaxed(&histogram->sum_ns) / 1000;
    if (err != OK) return err;
    return buf_printf(out,
                      "weft_statement_seconds_bucket{kind=\"%s\",le=\"+Inf\"} %llu\n"
                      "weft_statement_seconds_sum{kind=\"%s\"} %llu.%06llu\n"
                      "weft_statement_seconds_count{kind=\"%s\"} %llu\n",
                      kind, (unsigned long long)count, kind, (unsigned long long)(sum_us / 1000000),
                      (unsigned long long)(sum_us % 1000000), kind, (unsigned long long)count);
}

static Err
store_write(const ServedDb *db, Buf *out)
{
    StoreStats stats;
    u64 plan_hits, plan_misses;
    store_stats(session_store(db->keeper), &stats);
    session_plan_counts(db->keeper, &plan_hits, &plan_misses);
    const struct {
        const char *name;
        u64 value;
    } values[] = {
        {"commits_total", stats.commits},         {"rollbacks_total", stats.rollbacks},
        {"row_waits_total", stats.row_waits},     {"deadlocks_total", stats.deadlocks},
        {"conflicts_total", stats.conflicts},     {"log_syncs_total", stats.log_syncs},
        {"log_bytes_total", stats.log_bytes},     {"group_commits_total", stats.group_commits},
        {"checkpoints_total", stats.checkpoints}, {"transactions_open", stats.transactions_open},
        {"versions_live", stats.versions_live},   {"version_bytes", stats.version_bytes},
        {"file_bytes", stats.file_bytes},         {"memory_bytes", stats.memory_bytes},
        {"plan_hits_total", plan_hits},           {"plan_misses_total", plan_misses},
    };
    Err err = OK;
    for (size_t i = 0; err == OK && i < COUNT_OF(values); i++)
        err = buf_printf(out, "weft_store_%s{database=\"%s\"} %llu\n", values[i].name, db->name,
                         (unsigned long long)values[i].value);
    return err;
}

static Err
gauges_write(Server *server, Buf *out)
{
    RtCounters rt;
    rt_process_counters(server->process, &rt);
    rt_mutex_lock(&server->lock);
    u64 conns = server->conn_count, seats = server->seat_count;
    rt_mutex_unlock(&server->lock);
    Err err = gauge(out, "connections", "Connections now", conns);
    if (err == OK) err = gauge(out, "sessions", "Sessions now", seats);
    if (err == OK) err = gauge(out, "streams", "Hrana streams over HTTP", stream__count(server));
    if (err == OK)
        err = gauge(out, "held_bytes", "Answers held in memory",
                    rt_load_relaxed(&server->held_bytes));
    if (err == OK) err = gauge(out, "fibers", "Fibers now", rt.fibers);
    if (err == OK)
        err = gauge(out, "longest_stretch_us", "Longest run without giving others a turn",
                    rt.longest_stretch_ns / 1000);
    if (err == OK)
        err = gauge(out, "long_stretches", "Runs over 50 ms without a turn; the log names them",
                    rt.long_stretches);
    if (err == OK)
        err = gauge(out, "memory_bytes", "Memory counted against the cap of the process",
                    rt_process_account(server->process)->used_bytes);
    static const char *const parts[RT_PART_COUNT_] = {"stack_bytes", "socket_bytes",
                                                      "openssl_bytes"};
    for (u32 i = 0; err == OK && i < RT_PART_COUNT_; i++)
        err = gauge(out, parts[i], "A part of weft_memory_bytes",
                    rt_process_part(server->process, (RtPart)i)->used_bytes);
    if (err == OK)
        err = gauge(out, "memory_reclaimed_bytes", "Pages and plans that gave way at a cap",
                    rt.reclaimed_bytes);
    if (err == OK)
        err = gauge(out, "resident_bytes", "Memory of the process", rt_memory_resident_bytes());
    if (err == OK)
        err = gauge(out, "uptime_seconds", "Since the start",
                    (rt_now_ns() - server->started_ns) / RT_NS_PER_S);
    return err;
}

Err
metrics__write(Server *server, Buf *out)
{
    Err err = counters_write(server, out);
    if (err == OK) err = gauges_write(server, out);
    if (err == OK)
        err = buf_append_text(out, "# HELP weft_statement_seconds Time of statements by kind\n"
                                   "# TYPE weft_statement_seconds histogram\n");
    for (u32 i = 0; err == OK && i < STMT_KIND_COUNT_; i++)
        err = histogram_write(&server->statements[i], kinds[i], out);
    rt_mutex_lock(&server->lock);
    ServedDb *db = server->databases; /* The list only grows, at its head. */
    rt_mutex_unlock(&server->lock);
    for (; err == OK && db != NULL; db = db->next) {
        rt_mutex_lock(&db->lock);
        if (db->keeper != NULL) err = store_write(db, out);
        rt_mutex_unlock(&db->lock);
    }
    return err;
}
