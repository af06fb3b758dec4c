/*
 * work.c -- operations of a client, each followed by the comparison with the model.
 */
#include "work.h"

#include <stdio.h>
#include <string.h>

#include "rt/sim/sim.h"
#include "rt/time.h"

#define PATIENCE_NS      (45 * RT_NS_PER_S)  /* Of a client, while things break... */
#define CALM_PATIENCE_NS (300 * RT_NS_PER_S) /* ...and when nothing does: then it is a failure. */
#define OPS_MAX          10u

#define INSERT \
    "INSERT INTO log(tag, who, n, size, pair) VALUES(?1, ?2, ?3, ?4, ?5) RETURNING tag, n"
/* Only behind its predecessor: for those that are sent without knowing how that one went. */
#define GUARDED                                                           \
    "INSERT INTO log(tag, who, n, size, pair) SELECT ?1, ?2, ?3, ?4, ?5 " \
    "WHERE (SELECT ifnull(max(n), 0) FROM log WHERE who = ?2) = ?3 - 1 "  \
    "RETURNING tag, n"
#define OWN "SELECT ?1, ifnull(max(n), 0) FROM log WHERE who = ?2"
#define FRESH                                                      \
    "SELECT ?1, changes(), total_changes(), last_insert_rowid(), " \
    "(SELECT count(*) FROM sqlite_temp_schema)"
#define ALL                                                                                 \
    "SELECT ?1, t.who, t.n, (SELECT count(*) FROM log WHERE who = t.who), "                 \
    "(SELECT ifnull(max(n), 0) FROM log WHERE who = t.who), "                               \
    "(SELECT n FROM h WHERE id = 1), (SELECT count(*) FROM log), "                          \
    "(SELECT count(*) FROM (SELECT 1 FROM log GROUP BY pair HAVING count(*) <> max(size)))" \
    " FROM t ORDER BY t.who"
#define LARGE                                                                         \
    "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 4000) " \
    "SELECT i, 'a line of some length that is sent to one who does not read it' FROM s"
#define SCHEMA                                                                              \
    "BEGIN IMMEDIATE;"                                                                      \
    "CREATE TABLE IF NOT EXISTS log(who INTEGER, n INTEGER, size INTEGER, pair TEXT, "      \
    "tag TEXT UNIQUE, PRIMARY KEY(who, n));"                                                \
    "CREATE TABLE IF NOT EXISTS t(who INTEGER PRIMARY KEY, n INTEGER);"                     \
    "CREATE TABLE IF NOT EXISTS h(id INTEGER PRIMARY KEY, n INTEGER);"                      \
    "CREATE TRIGGER IF NOT EXISTS counts AFTER INSERT ON log BEGIN "                        \
    "UPDATE t SET n = new.n WHERE who = new.who; UPDATE h SET n = n + 1 WHERE id = 1; END;" \
    "INSERT OR IGNORE INTO h VALUES(1, 0);"                                                 \
    "INSERT OR IGNORE INTO t VALUES(0,0),(1,0),(2,0),(3,0),(4,0),(5,0);"                    \
    "COMMIT"

/* One connection's work. */
typedef struct Shift {
    Model *model;
    u32 who;
    Talk talk;
    u32 calm;        /* Phase that was calm when the connection was made; 0: none. */
    bool is_certain; /* Is the fate of everything tried known? */
    u64 last;        /* Then: the newest number. */
} Shift;

static bool
is_calm(const Shift *shift)
{
    return shift->calm != 0 && rt_load(&shift->model->is_calm) == shift->calm;
}

static bool
starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* May a request fail in this way? */
static void
code_check(const Shift *shift, const char *code, const char *what)
{
    static const char *const never[] = {"SQLITE_CORRUPT", "SQLITE_MISUSE",       "SQLITE_INTERNAL",
                                        "SQLITE_NOTADB",  "SQL_INPUT_ERROR",     "SQL_PARSE_ERROR",
                                        "ARGS_INVALID",   "SQL_MANY_STATEMENTS", "QUACK_REQUEST",
                                        "QUACK_PARAMS",   "QUACK_JSON"};
    static const char *const calm[] = {"SQLITE_BUSY", "SQLITE_CONSTRAINT", "TRANSACTION_TIMEOUT"};
    for (size_t i = 0; i < COUNT_OF(never); i++)
        if (starts_with(code, never[i]) && shift->model->schema_ready)
            rt_sim_fail("%s: %s", what, code);
    for (size_t i = 0; i < COUNT_OF(calm); i++)
        if (starts_with(code, calm[i])) return;
    if (is_calm(shift)) rt_sim_fail("%s failed while nothing was wrong: %s", what, code);
}

/* True: there is an answer, and it is good. */
static bool
ask(Shift *shift, u32 lane, const Ask *ask, Answer *answer, bool *over_out)
{
    shift->model->requests++;
    *over_out = !talk_ask(&shift->talk, lane, ask, answer);
    if (!*over_out && !answer->good) {
        rt_sim_trace(ask->sql, 0);
        rt_sim_trace(answer->code, shift->who);
        code_check(shift, answer->code, ask->sql);
    }
    return !*over_out && answer->good;
}

/* ---- writing ---- */

static void
pair_name(Shift *shift, char pair[TAG_BYTES])
{
    snprintf(pair, TAG_BYTES, "p%u-%llu", shift->who,
             (unsigned long long)++shift->model->serial[shift->who]);
}

static Ask
insert_ask(const Shift *shift, u64 n, u64 size, const char *pair)
{
    return (Ask){.sql = INSERT, .count = 3, .arg = {shift->who, (i64)n, (i64)size}, .pair = pair};
}

static void
try(Shift *shift, u64 n)
{
    u64 *tried = &shift->model->tried[shift->who];
    *tried = MAX_OF(*tried, n);
    shift->is_certain = false;
}

static void
acknowledged(Shift *shift, u64 n)
{
    u64 *acked = &shift->model->acked[shift->who];
    *acked = MAX_OF(*acked, n);
    shift->last = n;
    shift->is_certain = true;
    shift->model->writes++;
    rt_sim_trace("acked", shift->who * 100000 + n);
}

/* The returned row must be the one that was given. */
static void
returned_check(const Answer *answer, u64 n)
{
    if (answer->rows != 1 || answer->cell[0][0] != (i64)n)
        rt_sim_fail("RETURNING gave %u rows, %lld for %llu", answer->rows,
                    (long long)answer->cell[0][0], (unsigned long long)n);
}

/* How far did it come?  What is shown must not vanish. */
static bool
own_find(Shift *shift)
{
    Answer answer;
    bool over;
    Model *model = shift->model;
    u64 acked = model->acked[shift->who];
    Ask own = {.sql = OWN, .count = 1, .arg = {shift->who}};
    if (!ask(shift, 0, &own, &answer, &over)) return !over;
    if (answer.rows != 1) rt_sim_fail("max() gave %u rows", answer.rows);
    u64 n = (u64)answer.cell[0][0];
    rt_sim_trace("own", shift->who * 100000 + n);
    if (n < acked || n > model->tried[shift->who])
        rt_sim_fail("client %u is at %llu, acknowledged %llu, tried %llu", shift->who,
                    (unsigned long long)n, (unsigned long long)acked,
                    (unsigned long long)model->tried[shift->who]);
    shift->last = n;
    shift->is_certain = true;
    model->acked[shift->who] = MAX_OF(model->acked[shift->who], n);
    return true;
}

static bool
write_one(Shift *shift, u32 lane)
{
    char pair[TAG_BYTES];
    Answer answer;
    bool over;
    u64 n = shift->last + 1;
    pair_name(shift, pair);
    Ask insert = insert_ask(shift, n, 1, pair);
    try(shift, n);
    if (!ask(shift, lane, &insert, &answer, &over)) return !over;
    returned_check(&answer, n);
    acknowledged(shift, n);
    return true;
}

/* A transaction over several requests.  Sometimes the client forgets it halfway. */
static bool
write_pair(Shift *shift, u32 lane)
{
    static const char *const begins[] = {"BEGIN IMMEDIATE", "BEGIN", "BEGIN DEFERRED"};
    char pair[TAG_BYTES];
    Answer answer;
    bool over;
    u64 n = shift->last + 1;
    pair_name(shift, pair);
    Ask begin = {.sql = begins[rt_sim_draw(COUNT_OF(begins))]}, commit = {.sql = "COMMIT"};
    Ask first = insert_ask(shift, n, 2, pair), second = insert_ask(shift, n + 1, 2, pair);
    Ask rollback = {.sql = "ROLLBACK"};
    shift->talk.stays = true;
    if (!ask(shift, lane, &begin, &answer, &over)) return !over;
    try(shift, n + 1);
    bool good = ask(shift, lane, &first, &answer, &over);
    if (good) returned_check(&answer, n);
    if (rt_sim_draw(4) == 0) (void)!rt_sleep_ns(rt_sim_draw(2 * RT_NS_PER_S));
    if (good && rt_sim_draw(12) == 0) return false; /* Gone, with the transaction open. */
    if (good) good = ask(shift, lane, &second, &answer, &over);
    shift->talk.stays = rt_sim_draw(2) == 0;
    if (good && ask(shift, lane, &commit, &answer, &over)) {
        acknowledged(shift, n + 1);
        return true;
    }
    if (over) return false;
    /* If that fails too the transaction may be open still: end the connection. */
    shift->talk.stays = false;
    shift->model->requests++;
    return talk_ask(&shift->talk, lane, &rollback, &answer) && answer.good;
}

static bool
write_batch(Shift *shift, u32 lane)
{
    char pair[TAG_BYTES];
    Answer answer;
    u64 n = shift->last + 1;
    pair_name(shift, pair);
    Ask inserts[2] = {insert_ask(shift, n, 2, pair), insert_ask(shift, n + 1, 2, pair)};
    try(shift, n + 1);
    shift->model->requests++;
    if (!talk_batch(&shift->talk, lane, inserts, 2, &answer)) return false;
    if (answer.good)
        acknowledged(shift, n + 1);
    else
        code_check(shift, answer.code, "batch");
    return answer.good; /* Else the transaction may be open still. */
}

/* Several at once without waiting; if one fails those behind it do nothing. */
static bool
write_pipeline(Shift *shift)
{
    char pair[4][TAG_BYTES];
    Answer answer[4];
    Ask inserts[4];
    u64 n = shift->last + 1;
    u32 count = 2 + (u32)rt_sim_draw(3);
    for (u32 i = 0; i < count; i++) {
        pair_name(shift, pair[i]);
        inserts[i] = insert_ask(shift, n + i, 1, pair[i]);
        inserts[i].sql = GUARDED;
        try(shift, n + i);
    }
    shift->model->requests += count;
    if (!talk_pipeline(&shift->talk, inserts, count, answer)) return false;
    u32 good = 0;
    for (u32 i = 0; i < count; i++) {
        if (!answer[i].good) {
            code_check(shift, answer[i].code, "pipeline");
            continue;
        }
        if (answer[i].rows == 0) continue;
        /* Unless a request of a lost connection came in between. */
        bool was_done = answer[good].good || starts_with(answer[good].code, "SQLITE_CONSTRAINT");
        if (good < i && !was_done)
            rt_sim_fail("a statement ran although the one in front of it had failed: %s",
                        answer[good].code);
        returned_check(&answer[i], n + i);
        good++;
    }
    if (good == count) acknowledged(shift, n + count - 1);
    return true;
}

/* ---- reading ---- */

static void
row_check(const Model *model, const Answer *answer, u32 who, const u64 *least)
{
    const i64 *cell = answer->cell[who];
    if (cell[0] != who || cell[1] != cell[2] || cell[1] != cell[3])
        rt_sim_fail("client %u: row of %lld, t has %lld, the log %lld up to %lld", who,
                    (long long)cell[0], (long long)cell[1], (long long)cell[2], (long long)cell[3]);
    if ((u64)cell[1] < least[who] || (u64)cell[1] > model->tried[who])
        rt_sim_fail("client %u is seen at %lld, acknowledged %llu, tried %llu", who,
                    (long long)cell[1], (unsigned long long)least[who],
                    (unsigned long long)model->tried[who]);
    if (cell[4] != cell[5] || cell[6] != 0)
        rt_sim_fail("the count is %lld, the log has %lld rows; %lld transactions are not whole",
                    (long long)cell[4], (long long)cell[5], (long long)cell[6]);
}

static void
all_check(Model *model, const Answer *answer, const u64 *least)
{
    if (answer->rows != CLIENTS) rt_sim_fail("%u rows of %u", answer->rows, CLIENTS);
    for (u32 who = 0; who < CLIENTS; who++) {
        rt_sim_trace("seen", who * 100000 + (u64)answer->cell[who][1]);
        row_check(model, answer, who, least);
        model->acked[who] = MAX_OF(model->acked[who], (u64)answer->cell[who][1]);
    }
    model->reads++;
}

static bool
read_all(Shift *shift, u32 lane, bool as_cursor)
{
    u64 least[CLIENTS];
    Answer answer;
    bool over;
    Ask all = {.sql = ALL};
    memcpy(least, shift->model->acked, sizeof(least));
    if (as_cursor) {
        over = !talk_cursor(&shift->talk, &all, &answer);
        if (!over && !answer.good) code_check(shift, answer.code, "cursor");
    } else {
        (void)ask(shift, lane, &all, &answer, &over);
    }
    if (over || !answer.good) return !over;
    all_check(shift->model, &answer, least);
    return true;
}

/* A session that nobody has used: nothing of an earlier client is in it. */
static bool
fresh_check(Shift *shift, u32 lane)
{
    Answer answer;
    bool over;
    Ask fresh = {.sql = FRESH};
    if (!ask(shift, lane, &fresh, &answer, &over)) return !over;
    for (u32 i = 0; i < 4; i++)
        if (answer.cell[0][i] != 0)
            rt_sim_fail("a new session has something of another: value %u is %lld", i,
                        (long long)answer.cell[0][i]);
    return true;
}

/* ---- bad manners ---- */

static bool
leave_traces(Shift *shift, u32 lane)
{
    static const char *const traces[] = {"CREATE TEMP TABLE IF NOT EXISTS mine(x)",
                                         "PRAGMA foreign_keys = on", "BEGIN"};
    Answer answer;
    bool over;
    Ask trace = {.sql = traces[rt_sim_draw(COUNT_OF(traces))]};
    (void)ask(shift, lane, &trace, &answer, &over);
    return false; /* And go. */
}

/* Ask for much, read nothing for a while, go. */
static bool
not_read(Shift *shift)
{
    bool good = link_send(&shift->talk.link, SLICE_LITERAL("{\"q\":\"" LARGE "\"}\n"));
    if (good && rt_sim_draw(2) == 0)
        good = link_send(&shift->talk.link, SLICE_LITERAL("{\"q\":\"SELECT 1"));
    if (good) (void)!rt_sleep_ns(rt_sim_draw(8 * RT_NS_PER_S));
    return false;
}

/* A stream that is over, a used baton, a wrong one. */
static bool
bad_batons(Shift *shift)
{
    char used[BATON_MAX], wrong[BATON_MAX];
    Answer answer;
    bool over;
    Link *link = &shift->talk.link;
    Ask begin = {.sql = "BEGIN"}, commit = {.sql = "COMMIT"};
    shift->talk.stays = true;
    if (!ask(shift, 0, &begin, &answer, &over)) return !over;
    memcpy(used, link->baton, BATON_MAX);
    if (used[0] == 0) rt_sim_fail("no baton for a stream that stays");
    if (!ask(shift, 0, &commit, &answer, &over)) return false;
    memcpy(wrong, link->baton, BATON_MAX);
    size_t last = strlen(wrong) - 1;
    wrong[last] = wrong[last] == '0' ? '1' : '0';
    if (!talk_bad_baton(&shift->talk, used) || !talk_bad_baton(&shift->talk, wrong)) return false;
    memcpy(used, link->baton, BATON_MAX);
    shift->talk.stays = false;
    if (!own_find(shift)) return false; /* Closes the stream. */
    return talk_bad_baton(&shift->talk, used);
}

/* All lanes of a socket at once; each answer finds its own. */
static bool
interleave(Shift *shift)
{
    static const Ask begin = {.sql = "BEGIN"}, commit = {.sql = "COMMIT"}, all = {.sql = ALL};
    const Ask *const rounds[] = {&begin, &all, &all, &commit};
    u64 least[CLIENTS];
    Answer answer;
    for (u32 round = 0; round < COUNT_OF(rounds); round++) {
        memcpy(least, shift->model->acked, sizeof(least));
        for (u32 lane = 0; lane < LANES; lane++)
            if (!talk_send(&shift->talk, lane, rounds[round])) return false;
        shift->model->requests += LANES;
        for (u32 lane = 0; lane < LANES; lane++) {
            if (!talk_wait(&shift->talk, lane, &answer)) return false;
            if (!answer.good) {
                code_check(shift, answer.code, "a lane");
                return false;
            }
            /* The second look is at the same snapshot, so at what the first one saw. */
            if (round == 1) all_check(shift->model, &answer, least);
        }
    }
    return true;
}

/* ---- a connection ---- */

static bool
operate(Shift *shift)
{
    LinkKind kind = shift->talk.link.kind;
    u32 lane = kind == LINK_WS ? (u32)rt_sim_draw(LANES) : 0;
    shift->talk.stays = false;
    if (!shift->is_certain) return own_find(shift);
    switch (rt_sim_draw(12)) {
    case 0:
    case 1:
    case 2: return write_one(shift, lane);
    case 3:
    case 4: return write_pair(shift, lane);
    case 5:
    case 6: return kind == LINK_QUACK ? write_pipeline(shift) : write_batch(shift, lane);
    case 7: return read_all(shift, lane, false);
    case 8: return read_all(shift, lane, kind == LINK_HTTP && shift->talk.link.version == 3);
    case 9:
        return kind == LINK_QUACK ? not_read(shift)
               : kind == LINK_WS  ? interleave(shift)
                                  : bad_batons(shift);
    case 10: return rt_sim_draw(3) == 0 ? leave_traces(shift, lane) : true;
    default: (void)!rt_sleep_ns(rt_sim_draw(100 * RT_NS_PER_MS)); return true;
    }
}

/* Also of one who connects while another does the same. */
static bool
schema_make(Shift *shift)
{
    Answer answer;
    if (shift->model->schema_ready) return true;
    if (shift->talk.link.kind != LINK_QUACK) return false;
    if (!talk_script(&shift->talk, SCHEMA, &answer)) return false;
    if (answer.good) shift->model->schema_ready = true;
    return false; /* What comes next is a session that nobody has used. */
}

static void
shift_work(Shift *shift)
{
    u32 ops = 1 + (u32)rt_sim_draw(OPS_MAX);
    if (!schema_make(shift)) return;
    if (!fresh_check(shift, 0)) return;
    while (ops-- > 0 && !rt_load(&shift->model->is_over))
        if (!operate(shift)) break;
    if (shift->talk.link.timed_out && is_calm(shift))
        rt_sim_fail("client %u: no answer while nothing was wrong", shift->who);
    if (shift->talk.link.ended && is_calm(shift))
        rt_sim_fail("client %u: the connection was ended while nothing was wrong", shift->who);
}

void
work_client(void *arg)
{
    Client *client = arg;
    Model *model = client->model;
    while (!rt_load(&model->is_over)) {
        Shift *shift = MEM_NEW(Shift);
        if (shift != NULL) {
            shift->model = model;
            shift->who = client->who;
            shift->calm = rt_load(&model->is_calm);
            shift->talk.who = client->who;
            shift->talk.serial = &model->serial[client->who];
            u64 patience_ns = shift->calm != 0 ? CALM_PATIENCE_NS : PATIENCE_NS;
            bool good = talk_open(&shift->talk, (LinkKind)(client->who % LINK_KINDS), patience_ns);
            model->connects += good;
            if (good) shift_work(shift);
            talk_close(&shift->talk);
        }
        mem_free(shift);
        (void)!rt_sleep_ns(1 + rt_sim_draw(30 * RT_NS_PER_MS));
        rt_task_clear_cancel(rt_self());
    }
}

bool
work_look(Model *model)
{
    Shift shift = {.model = model, .calm = rt_load(&model->is_calm)};
    shift.talk.serial = &model->serial[0];
    bool good = talk_open(&shift.talk, LINK_QUACK, CALM_PATIENCE_NS) &&
                (!model->schema_ready || read_all(&shift, 0, false));
    talk_close(&shift.talk);
    return good;
}
