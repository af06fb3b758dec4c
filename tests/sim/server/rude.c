/*
 * rude.c -- what clients do that they should not, or that nobody expects of them.
 */
#include <stdio.h>
#include <string.h>

#include "rt/sim/sim.h"
#include "rt/time.h"
#include "work__shift.h"

#define LARGE                                                                         \
    "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 4000) " \
    "SELECT i, 'a line of some length that is sent to one who does not read it' FROM s"

bool
rude_traces(Shift *shift, u32 lane)
{
    static const char *const traces[] = {"CREATE TEMP TABLE IF NOT EXISTS mine(x)",
                                         "PRAGMA foreign_keys = on", "BEGIN"};
    Answer answer;
    bool over;
    Ask trace = {.sql = traces[rt_sim_draw(COUNT_OF(traces))]};
    (void)shift__ask(shift, lane, &trace, &answer, &over);
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

/* ---- batons ---- */

/* A baton that is no good any more, for anybody to try. */
static void
baton_put(Shift *shift, const char *text, bool is_live)
{
    Model *model = shift->model;
    Baton *baton = &model->baton[model->next_baton++ % BATONS];
    if (text[0] == 0) return;
    baton->is_live = is_live;
    baton->db = shift->db;
    memcpy(baton->text, text, BATON_MAX);
}

/* Somebody else's: of no use, unless it is live and for the same database and trust. */
static bool
baton_try(Shift *shift)
{
    const Baton *baton = &shift->model->baton[rt_sim_draw(BATONS)];
    char text[BATON_MAX];
    if (baton->text[0] == 0) return true;
    if (baton->is_live && baton->db == shift->db && shift->token_kind != TOKEN_READS) return true;
    memcpy(text, baton->text, BATON_MAX);
    return talk_bad_baton(&shift->talk, text);
}

/* A transaction that others see the baton of, and that its owner goes on with all the same. */
static bool
baton_shared(Shift *shift)
{
    Answer answer;
    bool over;
    u32 at = shift->model->next_baton % BATONS;
    Baton *baton = &shift->model->baton[at];
    Ask begin = {.sql = "BEGIN"}, commit = {.sql = "COMMIT"};
    shift->talk.stays = true;
    if (!shift__ask(shift, 0, &begin, &answer, &over)) return !over;
    baton_put(shift, shift->talk.link.baton, true);
    (void)!rt_sleep_ns(rt_sim_draw(500 * RT_NS_PER_MS));
    char text[BATON_MAX];
    memcpy(text, shift->talk.link.baton, BATON_MAX);
    shift->talk.stays = false;
    (void)shift__ask(shift, 0, &commit, &answer, &over);
    if (!over && strcmp(baton->text, text) == 0) baton->is_live = false; /* Now that it is used. */
    return !over;
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
    if (!shift__ask(shift, 0, &begin, &answer, &over)) return !over;
    memcpy(used, link->baton, BATON_MAX);
    if (used[0] == 0) rt_sim_fail("no baton for a stream that stays");
    if (!shift__ask(shift, 0, &commit, &answer, &over)) return false;
    memcpy(wrong, link->baton, BATON_MAX);
    size_t last = strlen(wrong) - 1;
    wrong[last] = wrong[last] == '0' ? '1' : '0';
    baton_put(shift, used, false);
    if (!talk_bad_baton(&shift->talk, used) || !talk_bad_baton(&shift->talk, wrong)) return false;
    memcpy(used, link->baton, BATON_MAX);
    shift->talk.stays = false;
    if (!shift__own_find(shift)) return false; /* Closes the stream. */
    baton_put(shift, used, false);
    return talk_bad_baton(&shift->talk, used);
}

/* Nobody comes back for a transaction: it is rolled back, and its baton is no good. */
static bool
baton_expired(Shift *shift)
{
    char pair[TAG_BYTES];
    Answer answer;
    bool over;
    Link *link = &shift->talk.link;
    Ask begin = {.sql = "BEGIN"};
    shift__pair_name(shift, pair);
    Ask insert = shift__insert(shift, shift->last + 1, 1, pair); /* Not counted as tried. */
    shift->talk.stays = true;
    if (!shift__ask(shift, 0, &begin, &answer, &over)) return !over;
    (void)shift__ask(shift, 0, &insert, &answer, &over);
    if (over || link->baton[0] == 0) return false;
    (void)!rt_sleep_ns(STREAM_TIMEOUT_NS + rt_sim_draw(STREAM_TIMEOUT_NS));
    baton_put(shift, link->baton, false);
    if (!talk_bad_baton(&shift->talk, link->baton)) return false;
    link->baton[0] = 0;
    shift->talk.stays = false;
    return shift__own_find(shift);
}

/* ---- a WebSocket's streams ---- */

/* All lanes of a socket at once; each answer finds its own. */
static bool
interleave(Shift *shift)
{
    static const Ask begin = {.sql = "BEGIN"}, commit = {.sql = "COMMIT"}, all = {.sql = SHIFT_ALL};
    const Ask *const rounds[] = {&begin, &all, &all, &commit};
    u64 least[CLIENTS];
    Answer answer;
    for (u32 round = 0; round < COUNT_OF(rounds); round++) {
        memcpy(least, shift->data->acked, sizeof(least));
        for (u32 lane = 0; lane < LANES; lane++)
            if (!talk_send(&shift->talk, lane, rounds[round])) return false;
        shift->model->requests += LANES;
        for (u32 lane = 0; lane < LANES; lane++) {
            if (!talk_wait(&shift->talk, lane, &answer)) return false;
            if (!answer.good) {
                shift__code_check(shift, answer.code, "a lane");
                return false;
            }
            /* The second look is at the same snapshot, so at what the first one saw. */
            if (round == 1) shift__all_check(shift, &answer, least);
        }
    }
    return true;
}

/* ---- other databases ---- */

static const char *
other_name(const Shift *shift)
{
    return work_db_names[(shift->db + 1) % DATABASES];
}

/* Quack: to the other database; or to one that there cannot be. */
static bool
use_other(Shift *shift)
{
    static const char *const never[] = {"", "..", "../left", "/left", "Left", "left.weft", "-x"};
    Link *link = &shift->talk.link;
    bool refused, is_odd = rt_sim_draw(4) == 0;
    const char *name = is_odd ? never[rt_sim_draw(COUNT_OF(never))] : other_name(shift);
    if (!shift->model->has_many) return true;
    bool may = !is_odd && shift->token_kind != TOKEN_OF_ONE;
    if (!link_use(link, name, &refused)) return false;
    if (!refused && !may) rt_sim_fail("client %u was let into %s", shift->who, name);
    if (refused) {
        /* It is the other one that there may not be. */
        shift->data = &shift->model->data[(shift->db + 1) % DATABASES];
        if (may) shift__code_check(shift, link->refused, "use");
        shift->data = &shift->model->data[shift->db];
        link->refused[0] = 0;
        return true;
    }
    shift->db = (shift->db + 1) % DATABASES;
    shift->data = &shift->model->data[shift->db];
    shift->is_certain = false;
    return shift->data->schema_ready;
}

/* ATTACH reaches the other database, but not with a token for one. */
static bool
attach_other(Shift *shift, u32 lane)
{
    char sql[60];
    Answer answer;
    bool over;
    Ask attach = {.sql = sql};
    Ask look = {.sql = "SELECT ?1, n FROM o.h WHERE id = 2"};
    u32 other = (shift->db + 1) % DATABASES;
    if (!shift->model->has_many || !shift->model->data[other].schema_ready) return true;
    snprintf(sql, sizeof(sql), "ATTACH '%s' AS o", other_name(shift));
    shift->talk.stays = true;
    if (shift->token_kind == TOKEN_OF_ONE) {
        if (!talk_ask(&shift->talk, lane, &attach, &answer)) return false;
        if (answer.good)
            rt_sim_fail("client %u reached %s with a token for another", shift->who,
                        other_name(shift));
        return false;
    }
    if (!shift__ask(shift, lane, &attach, &answer, &over)) return false;
    if (shift__ask(shift, lane, &look, &answer, &over) &&
        (answer.rows != 1 || answer.cell[0][0] != (i64)other))
        rt_sim_fail("an attached database is another");
    return false; /* And go: nobody else may find it attached. */
}

/* ---- choosing ---- */

bool
rude_act(Shift *shift)
{
    LinkKind kind = shift->talk.link.kind;
    u32 what = (u32)rt_sim_draw(6), lane = kind == LINK_WS ? (u32)rt_sim_draw(LANES) : 0;
    if (what == 0) return attach_other(shift, lane);
    if (kind == LINK_QUACK) return what < 4 ? not_read(shift) : use_other(shift);
    if (kind == LINK_WS) return interleave(shift);
    switch (what) {
    case 1: return bad_batons(shift);
    case 2: return baton_expired(shift);
    case 3: return baton_shared(shift);
    default: return baton_try(shift);
    }
}

bool
rude_reader(Shift *shift, u32 lane)
{
    static const char *const others[] = {"CREATE TABLE never(x)", "DELETE FROM log", "VACUUM",
                                         "DROP TABLE log", "VACUUM INTO 'never'"};
    char pair[TAG_BYTES];
    Answer answer;
    u32 what = (u32)rt_sim_draw(6);
    if (what == 0) return shift__own_find(shift);
    if (what == 1) return shift->talk.link.kind != LINK_HTTP || baton_try(shift);
    if (what < 4) return shift__read_all(shift, lane, false);
    shift__pair_name(shift, pair);
    Ask write = shift__insert(shift, shift->last + 1, 1, pair); /* Not counted as tried. */
    if (what == 5) write = (Ask){.sql = others[rt_sim_draw(COUNT_OF(others))]};
    shift->model->requests++;
    if (!talk_ask(&shift->talk, lane, &write, &answer)) return false;
    if (answer.good) rt_sim_fail("client %u may only read, and wrote: %s", shift->who, write.sql);
    return true;
}

void
rude_stranger(Shift *shift, bool opened)
{
    char pair[TAG_BYTES];
    Answer answer = {0};
    Link *link = &shift->talk.link;
    shift__pair_name(shift, pair);
    Ask write = shift__insert(shift, shift->data->tried[shift->who] + 1, 1, pair);
    /* Over HTTP each request shows its token; Quack may be asked without one, and not do it. */
    bool may_open = link->kind == LINK_HTTP ||
                    (link->kind == LINK_QUACK && shift->token_kind == TOKEN_MISSING &&
                     !shift->model->has_many);
    if (opened && !may_open) rt_sim_fail("client %u was let in with a bad token", shift->who);
    bool answered = opened && talk_ask(&shift->talk, 0, &write, &answer);
    if (answered && answer.good) rt_sim_fail("client %u was served", shift->who);
    const char *code = answered ? answer.code : link->refused;
    if (code[0] == 0) return; /* The network, or no memory. */
    bool is_auth = strncmp(code, "AUTH_", 5) == 0 || strcmp(code, "QUACK_AUTH") == 0;
    if (!is_auth && shift__is_calm(shift)) rt_sim_fail("a bad token gives %s", code);
    bool is_expired = strcmp(code, "AUTH_JWT_EXPIRED") == 0;
    if (is_expired != (shift->token_kind == TOKEN_EXPIRED && link->kind != LINK_QUACK) && is_auth)
        rt_sim_fail("token of kind %u gives %s", shift->token_kind, code);
    shift->model->refusals++;
}
