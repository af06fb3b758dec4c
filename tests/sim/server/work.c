/*
 * work.c -- operations of a client, each followed by the comparison with the model.
 */
#include <stdio.h>
#include <string.h>

#include "rt/sim/sim.h"
#include "rt/time.h"
#include "work__shift.h"

#define PATIENCE_NS      (45 * RT_NS_PER_S)  /* Of a client, while things break... */
#define CALM_PATIENCE_NS (300 * RT_NS_PER_S) /* ...and when nothing does: then it is a failure. */
#define OPS_MAX          10u

const char *const work_db_names[DATABASES] = {"left", "right"};

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
#define SCHEMA(number)                                                                      \
    "BEGIN IMMEDIATE;"                                                                      \
    "CREATE TABLE IF NOT EXISTS log(who INTEGER, n INTEGER, size INTEGER, pair TEXT, "      \
    "tag TEXT UNIQUE, PRIMARY KEY(who, n));"                                                \
    "CREATE TABLE IF NOT EXISTS t(who INTEGER PRIMARY KEY, n INTEGER);"                     \
    "CREATE TABLE IF NOT EXISTS h(id INTEGER PRIMARY KEY, n INTEGER);"                      \
    "CREATE TRIGGER IF NOT EXISTS counts AFTER INSERT ON log BEGIN "                        \
    "UPDATE t SET n = new.n WHERE who = new.who; UPDATE h SET n = n + 1 WHERE id = 1; END;" \
    "INSERT OR IGNORE INTO h VALUES(1, 0), (2, " number ");"                                \
    "INSERT OR IGNORE INTO t VALUES(0,0),(1,0),(2,0),(3,0),(4,0),(5,0);"                    \
    "COMMIT"

bool
shift__is_calm(const Shift *shift)
{
    return shift->calm != 0 && rt_load(&shift->model->is_calm) == shift->calm;
}

static bool
starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* May a request fail in this way? */
void
shift__code_check(const Shift *shift, const char *code, const char *what)
{
    static const char *const never[] = {"SQLITE_CORRUPT", "SQLITE_MISUSE",       "SQLITE_INTERNAL",
                                        "SQLITE_NOTADB",  "SQL_INPUT_ERROR",     "SQL_PARSE_ERROR",
                                        "ARGS_INVALID",   "SQL_MANY_STATEMENTS", "QUACK_REQUEST",
                                        "QUACK_PARAMS",   "QUACK_JSON"};
    static const char *const calm[] = {"SQLITE_BUSY", "SQLITE_CONSTRAINT", "TRANSACTION_TIMEOUT"};
    for (size_t i = 0; i < COUNT_OF(never); i++)
        if (starts_with(code, never[i]) && shift->data->schema_ready)
            rt_sim_fail("%s: %s", what, code);
    for (size_t i = 0; i < COUNT_OF(calm); i++)
        if (starts_with(code, calm[i])) return;
    if (!shift->model->creates && !shift->data->schema_ready) return; /* There is none. */
    if (shift__is_calm(shift)) rt_sim_fail("%s failed while nothing was wrong: %s", what, code);
}

/* Was it right to turn this client away? */
static void
refusal_check(const Shift *shift)
{
    const char *code = shift->talk.link.refused;
    bool expired = strcmp(code, "AUTH_JWT_EXPIRED") == 0 || strcmp(code, "QUACK_AUTH") == 0;
    if (code[0] == 0) return;
    if (expired && shift->token_kind == TOKEN_SHORT && rt_wall_ns() >= shift->dies_ns) return;
    if (starts_with(code, "AUTH_") || starts_with(code, "QUACK_AUTH"))
        rt_sim_fail("client %u was turned away: %s", shift->who, code);
    shift__code_check(shift, code, "opening the database");
}

/* True: there is an answer, and it is good. */
bool
shift__ask(Shift *shift, u32 lane, const Ask *ask, Answer *answer, bool *over_out)
{
    i64 asked_ns = rt_wall_ns();
    shift->model->requests++;
    *over_out = !talk_ask(&shift->talk, lane, ask, answer);
    if (!*over_out && !answer->good) {
        rt_sim_trace(ask->sql, 0);
        rt_sim_trace(answer->code, shift->who);
        shift__code_check(shift, answer->code, ask->sql);
    }
    if (!*over_out && shift->talk.link.kind == LINK_HTTP && asked_ns >= shift->dies_ns)
        rt_sim_fail("client %u was served with an expired token", shift->who);
    return !*over_out && answer->good;
}

/* ---- writing ---- */

void
shift__pair_name(Shift *shift, char pair[TAG_BYTES])
{
    snprintf(pair, TAG_BYTES, "p%u-%llu", shift->who,
             (unsigned long long)++shift->model->serial[shift->who]);
}

Ask
shift__insert(const Shift *shift, u64 n, u64 size, const char *pair)
{
    return (Ask){.sql = INSERT, .count = 3, .arg = {shift->who, (i64)n, (i64)size}, .pair = pair};
}

static void
try(Shift *shift, u64 n)
{
    u64 *tried = &shift->data->tried[shift->who];
    *tried = MAX_OF(*tried, n);
    shift->is_certain = false;
}

static void
acknowledged(Shift *shift, u64 n)
{
    u64 *acked = &shift->data->acked[shift->who];
    *acked = MAX_OF(*acked, n);
    shift->last = n;
    shift->is_certain = true;
    shift->model->writes++;
    rt_sim_trace("acked", (shift->db * 10 + shift->who) * 100000 + n);
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
bool
shift__own_find(Shift *shift)
{
    Answer answer;
    bool over;
    Data *data = shift->data;
    u64 acked = data->acked[shift->who];
    Ask own = {.sql = OWN, .count = 1, .arg = {shift->who}};
    if (!shift__ask(shift, 0, &own, &answer, &over)) return !over;
    if (answer.rows != 1) rt_sim_fail("max() gave %u rows", answer.rows);
    u64 n = (u64)answer.cell[0][0];
    rt_sim_trace("own", (shift->db * 10 + shift->who) * 100000 + n);
    if (n < acked || n > data->tried[shift->who])
        rt_sim_fail("client %u is at %llu, acknowledged %llu, tried %llu", shift->who,
                    (unsigned long long)n, (unsigned long long)acked,
                    (unsigned long long)data->tried[shift->who]);
    shift->last = n;
    shift->is_certain = true;
    data->acked[shift->who] = MAX_OF(data->acked[shift->who], n);
    return true;
}

static bool
write_one(Shift *shift, u32 lane)
{
    char pair[TAG_BYTES];
    Answer answer;
    bool over;
    u64 n = shift->last + 1;
    shift__pair_name(shift, pair);
    Ask insert = shift__insert(shift, n, 1, pair);
    try(shift, n);
    if (!shift__ask(shift, lane, &insert, &answer, &over)) return !over;
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
    shift__pair_name(shift, pair);
    Ask begin = {.sql = begins[rt_sim_draw(COUNT_OF(begins))]}, commit = {.sql = "COMMIT"};
    Ask first = shift__insert(shift, n, 2, pair), second = shift__insert(shift, n + 1, 2, pair);
    Ask rollback = {.sql = "ROLLBACK"};
    shift->talk.stays = true;
    if (!shift__ask(shift, lane, &begin, &answer, &over)) return !over;
    try(shift, n + 1);
    bool good = shift__ask(shift, lane, &first, &answer, &over);
    if (good) returned_check(&answer, n);
    if (rt_sim_draw(4) == 0) (void)!rt_sleep_ns(rt_sim_draw(2 * RT_NS_PER_S));
    if (good && rt_sim_draw(12) == 0) return false; /* Gone, with the transaction open. */
    if (good) good = shift__ask(shift, lane, &second, &answer, &over);
    shift->talk.stays = rt_sim_draw(2) == 0;
    if (good && shift__ask(shift, lane, &commit, &answer, &over)) {
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
    shift__pair_name(shift, pair);
    Ask inserts[2] = {shift__insert(shift, n, 2, pair), shift__insert(shift, n + 1, 2, pair)};
    try(shift, n + 1);
    shift->model->requests++;
    if (!talk_batch(&shift->talk, lane, inserts, 2, &answer)) return false;
    if (answer.good)
        acknowledged(shift, n + 1);
    else
        shift__code_check(shift, answer.code, "batch");
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
    u64 tried_before = shift->data->tried[shift->who];
    for (u32 i = 0; i < count; i++) {
        shift__pair_name(shift, pair[i]);
        inserts[i] = shift__insert(shift, n + i, 1, pair[i]);
        inserts[i].sql = GUARDED;
        try(shift, n + i);
    }
    shift->model->requests += count;
    if (!talk_pipeline(&shift->talk, inserts, count, answer)) return false;
    u32 good = 0;
    for (u32 i = 0; i < count; i++) {
        if (!answer[i].good) {
            shift__code_check(shift, answer[i].code, "pipeline");
            continue;
        }
        if (answer[i].rows == 0) continue;
        /* The one in front of it ran, here or for a connection that was lost. */
        bool ran = i == 0 || (answer[i - 1].good && answer[i - 1].rows > 0);
        if (!ran && n + i - 1 > tried_before)
            rt_sim_fail("a statement ran although the one in front of it had failed: %s",
                        answer[i - 1].code);
        returned_check(&answer[i], n + i);
        good++;
    }
    if (good == count) acknowledged(shift, n + count - 1);
    return true;
}

/* ---- reading ---- */

static void
row_check(const Data *data, const Answer *answer, u32 who, const u64 *least)
{
    const i64 *cell = answer->cell[who];
    if (cell[0] != who || cell[1] != cell[2] || cell[1] != cell[3])
        rt_sim_fail("client %u: row of %lld, t has %lld, the log %lld up to %lld", who,
                    (long long)cell[0], (long long)cell[1], (long long)cell[2], (long long)cell[3]);
    if ((u64)cell[1] < least[who] || (u64)cell[1] > data->tried[who])
        rt_sim_fail("client %u is seen at %lld, acknowledged %llu, tried %llu", who,
                    (long long)cell[1], (unsigned long long)least[who],
                    (unsigned long long)data->tried[who]);
    if (cell[4] != cell[5] || cell[6] != 0)
        rt_sim_fail("the count is %lld, the log has %lld rows; %lld transactions are not whole",
                    (long long)cell[4], (long long)cell[5], (long long)cell[6]);
}

void
shift__all_check(Shift *shift, const Answer *answer, const u64 *least)
{
    Data *data = shift->data;
    if (answer->rows != CLIENTS) rt_sim_fail("%u rows of %u", answer->rows, CLIENTS);
    for (u32 who = 0; who < CLIENTS; who++) {
        rt_sim_trace("seen", (shift->db * 10 + who) * 100000 + (u64)answer->cell[who][1]);
        row_check(data, answer, who, least);
        data->acked[who] = MAX_OF(data->acked[who], (u64)answer->cell[who][1]);
        if (answer->cell[who][7] != (i64)shift->db)
            rt_sim_fail("database %u says that it is %lld", shift->db,
                        (long long)answer->cell[who][7]);
    }
    shift->model->reads++;
}

bool
shift__read_all(Shift *shift, u32 lane, bool as_cursor)
{
    u64 least[CLIENTS];
    Answer answer;
    bool over;
    Ask all = {.sql = SHIFT_ALL};
    memcpy(least, shift->data->acked, sizeof(least));
    if (as_cursor) {
        over = !talk_cursor(&shift->talk, lane, &all, &answer);
        if (!over && !answer.good) shift__code_check(shift, answer.code, "cursor");
    } else {
        (void)shift__ask(shift, lane, &all, &answer, &over);
    }
    if (over || !answer.good) return !over;
    shift__all_check(shift, &answer, least);
    return true;
}

/* A session that nobody has used: nothing of an earlier client is in it. */
static bool
fresh_check(Shift *shift, u32 lane)
{
    Answer answer;
    bool over;
    Ask fresh = {.sql = FRESH};
    if (!shift__ask(shift, lane, &fresh, &answer, &over)) return !over;
    for (u32 i = 0; i < 4; i++)
        if (answer.cell[0][i] != 0)
            rt_sim_fail("a new session has something of another: value %u is %lld", i,
                        (long long)answer.cell[0][i]);
    return true;
}

/* ---- a connection ---- */

static bool
operate(Shift *shift)
{
    const Link *link = &shift->talk.link;
    LinkKind kind = link->kind;
    u32 lane = kind == LINK_WS ? (u32)rt_sim_draw(LANES) : 0;
    shift->talk.stays = false;
    if (!shift->is_certain) return shift__own_find(shift);
    if (shift->token_kind == TOKEN_READS) return rude_reader(shift, lane);
    switch (rt_sim_draw(14)) {
    case 0:
    case 1:
    case 2: return write_one(shift, lane);
    case 3:
    case 4: return write_pair(shift, lane);
    case 5:
    case 6: return kind == LINK_QUACK ? write_pipeline(shift) : write_batch(shift, lane);
    case 7: return shift__read_all(shift, lane, false);
    case 8:
    case 9: return shift__read_all(shift, lane, kind != LINK_QUACK && link->version == 3);
    case 10:
    case 11: return rude_act(shift);
    case 12: return rt_sim_draw(3) == 0 ? rude_traces(shift, lane) : true;
    default: (void)!rt_sleep_ns(rt_sim_draw(100 * RT_NS_PER_MS)); return true;
    }
}

/* Also of one who connects while another does the same. */
static bool
schema_make(Shift *shift)
{
    static const char *const schemas[DATABASES] = {SCHEMA("0"), SCHEMA("1")};
    Answer answer;
    if (shift->data->schema_ready) return true;
    if (shift->talk.link.kind != LINK_QUACK || shift->token_kind == TOKEN_READS) return false;
    if (!talk_script(&shift->talk, schemas[shift->db], &answer)) return false;
    if (answer.good) shift->data->schema_ready = true;
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
}

/* Who comes, for which database, and with what in the hand. */
static void
shift_begin(Shift *shift, Model *model, u32 who, u32 db, TokenKind kind)
{
    *shift = (Shift){.model = model, .who = who, .db = db, .token_kind = kind};
    shift->data = &model->data[db];
    shift->calm = rt_load(&model->is_calm);
    shift->dies_ns = INT64_MAX;
    shift->way.naming = (Naming)rt_sim_draw(NAMINGS);
    shift->way.token = shift->token;
    if (model->has_many) shift->way.db = work_db_names[db];
    if (model->is_guarded) token_make(kind, work_db_names[db], shift->token, &shift->dies_ns);
    shift->talk.who = who;
    shift->talk.serial = &model->serial[who];
    shift->talk.is_calm = shift->calm != 0;
}

static TokenKind
token_draw(const Model *model)
{
    if (!model->is_guarded) return TOKEN_STATIC;
    if (rt_sim_draw(8) != 0) return (TokenKind)rt_sim_draw(TOKENS_GOOD);
    TokenKind kind = (TokenKind)(TOKENS_GOOD + rt_sim_draw(TOKENS - TOKENS_GOOD));
    return kind == TOKEN_ELSEWHERE && !model->has_many ? TOKEN_WRONG : kind;
}

/* A connection from its beginning to its end. */
static void
shift_whole(Shift *shift)
{
    i64 opened_ns = rt_wall_ns();
    LinkKind kind = (LinkKind)(shift->who % LINK_KINDS);
    bool is_bad = shift->token_kind >= TOKENS_GOOD;
    u64 patience_ns = shift->calm != 0 ? CALM_PATIENCE_NS : PATIENCE_NS;
    bool good = talk_open(&shift->talk, kind, &shift->way, patience_ns);
    shift->model->connects += good;
    if (good && kind != LINK_HTTP && opened_ns >= shift->dies_ns && !is_bad)
        rt_sim_fail("client %u was let in with an expired token", shift->who);
    if (is_bad)
        rude_stranger(shift, good);
    else if (good)
        shift_work(shift);
    if (!is_bad) refusal_check(shift);
    if (shift->talk.link.timed_out && shift__is_calm(shift))
        rt_sim_fail("client %u: no answer while nothing was wrong", shift->who);
    if (shift->talk.link.ended && shift__is_calm(shift) && !is_bad)
        rt_sim_fail("client %u: the connection was ended while nothing was wrong", shift->who);
    talk_close(&shift->talk);
}

void
work_client(void *arg)
{
    Client *client = arg;
    Model *model = client->model;
    while (!rt_load(&model->is_over)) {
        Shift *shift = MEM_NEW(Shift);
        u32 db = model->has_many ? (u32)rt_sim_draw(DATABASES) : 0;
        u64 connects = model->connects, pause_ns = 30 * RT_NS_PER_MS;
        if (shift != NULL) {
            shift_begin(shift, model, client->who, db, token_draw(model));
            shift_whole(shift);
        }
        mem_free(shift);
        if (model->connects == connects) pause_ns = 500 * RT_NS_PER_MS; /* There is no server. */
        (void)!rt_sleep_ns(1 + rt_sim_draw(pause_ns));
        rt_task_clear_cancel(rt_self());
    }
}

bool
work_look(Model *model)
{
    for (u32 db = 0; db < (model->has_many ? DATABASES : 1); db++) {
        Shift shift;
        if (!model->data[db].schema_ready) continue;
        shift_begin(&shift, model, 0, db, TOKEN_STATIC);
        bool good = talk_open(&shift.talk, LINK_QUACK, &shift.way, CALM_PATIENCE_NS) &&
                    shift__read_all(&shift, 0, false);
        talk_close(&shift.talk);
        if (!good) return false;
    }
    return true;
}
