/*
 * ledger_books.c -- making the ledger's database, and auditing it.
 *
 * A transfer is posted (state 0), pending (1) or void (2).  An account carries four sums, which
 * must always be those of its transfers.  Half of the seeded transfers are between the first
 * hundredth of the accounts, so that these have a history.
 */
#include "ledger.h"

#include <stdlib.h>

void
ledger_fill(Ledger *ledger)
{
    db_remove(ledger->path);
    Db db = db_open(ledger->engine, ledger->path, (DbMode){0});
    const Engine *e = db.engine;
    uint64_t state = 88172645463325252u;
    int64_t *debits = calloc((size_t)ledger->accounts + 1, sizeof(int64_t));
    int64_t *credits = calloc((size_t)ledger->accounts + 1, sizeof(int64_t));
    if (debits == NULL || credits == NULL) abort();
    db_exec(&db,
            "CREATE TABLE account(id INTEGER PRIMARY KEY, debits_posted INT, credits_posted INT,"
            " debits_pending INT, credits_pending INT, code INT);"
            "CREATE TABLE transfer(id INTEGER PRIMARY KEY, debit INT, credit INT, amount INT,"
            " state INT, stamp INT);"
            "CREATE TABLE event(id INTEGER PRIMARY KEY, account INT, kind INT, note TEXT);"
            "BEGIN");
    sqlite3_stmt *stmt = db_prepare(&db, "INSERT INTO transfer VALUES(?,?,?,?,0,?)");
    for (int64_t i = 1; i <= ledger->seeded; i++) {
        int64_t most = i % 2 == 0 ? ledger->accounts : ledger->accounts / 100;
        int64_t debit = random_between(&state, 1, most), credit = random_between(&state, 1, most);
        int64_t amount = random_between(&state, 1, 1000);
        if (debit == credit) credit = debit % most + 1;
        debits[debit] += amount;
        credits[credit] += amount;
        e->bind_int64(stmt, 1, i);
        e->bind_int64(stmt, 2, debit);
        e->bind_int64(stmt, 3, credit);
        e->bind_int64(stmt, 4, amount);
        e->bind_int64(stmt, 5, 1000000 + i);
        db_run(&db, stmt);
    }
    e->finalize(stmt);
    stmt = db_prepare(&db, "INSERT INTO account VALUES(?1,?2,?3,0,0,?1 % 50)");
    for (int64_t i = 1; i <= ledger->accounts; i++) {
        e->bind_int64(stmt, 1, i);
        e->bind_int64(stmt, 2, debits[i]);
        e->bind_int64(stmt, 3, credits[i]);
        db_run(&db, stmt);
    }
    e->finalize(stmt);
    db_exec(&db, "COMMIT; CREATE INDEX transfer_debit ON transfer(debit, id);"
                 "CREATE INDEX transfer_credit ON transfer(credit, id)");
    db_close(&db);
    free(debits);
    free(credits);
}

typedef struct Rule {
    const char *text, *sql; /* The SQL must give 0. */
    bool is_deep;
} Rule;

static const Rule rules[] = {
    {"debits posted equal credits posted",
     "SELECT sum(debits_posted) - sum(credits_posted) FROM account", false},
    {"debits posted equal the posted transfers",
     "SELECT (SELECT sum(debits_posted) FROM account)"
     " - (SELECT sum(amount) FROM transfer WHERE state=0)",
     false},
    {"debits pending equal the open pending transfers",
     "SELECT (SELECT sum(debits_pending) FROM account)"
     " - ifnull((SELECT sum(amount) FROM transfer WHERE state=1), 0)",
     false},
    {"credits pending equal the open pending transfers",
     "SELECT (SELECT sum(credits_pending) FROM account)"
     " - ifnull((SELECT sum(amount) FROM transfer WHERE state=1), 0)",
     false},
    {"each account's debits are its transfers'",
     "SELECT count(*) FROM account a LEFT JOIN (SELECT debit, sum(amount) AS s FROM transfer"
     " WHERE state=0 GROUP BY debit) d ON d.debit=a.id WHERE a.debits_posted<>ifnull(d.s, 0)",
     true},
    {"each account's credits are its transfers'",
     "SELECT count(*) FROM account a LEFT JOIN (SELECT credit, sum(amount) AS s FROM transfer"
     " WHERE state=0 GROUP BY credit) c ON c.credit=a.id WHERE a.credits_posted<>ifnull(c.s, 0)",
     true},
    {"the index on debit holds every transfer",
     "SELECT (SELECT count(*) FROM transfer INDEXED BY transfer_debit WHERE debit>0)"
     " - (SELECT count(*) FROM transfer NOT INDEXED)",
     true},
};

bool
ledger_audit(Bench *bench, const Ledger *ledger, const char *after, bool deep)
{
    int failed = bench->failed;
    Db db = db_open(ledger->engine, ledger->path, (DbMode){0});
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (rules[i].is_deep && !deep) continue;
        int64_t off = db_int(&db, rules[i].sql);
        if (off == 0) continue;
        bench_fail(bench, "%s, after %s: not so: %s (off by %lld)", ledger->engine->name, after,
                   rules[i].text, (long long)off);
    }
    int64_t transfers = db_int(&db, "SELECT count(*) FROM transfer") - ledger->seeded;
    int64_t events = db_int(&db, "SELECT count(*) FROM event");
    if (transfers != ledger->transfers) {
        bench_fail(bench, "%s, after %s: %lld transfers, %lld were acknowledged",
                   ledger->engine->name, after, (long long)transfers, (long long)ledger->transfers);
    }
    if (events != ledger->events) {
        bench_fail(bench, "%s, after %s: %lld events, %lld were acknowledged", ledger->engine->name,
                   after, (long long)events, (long long)ledger->events);
    }
    if (db_int(&db, "SELECT count(DISTINCT id) FROM transfer") != transfers + ledger->seeded)
        bench_fail(bench, "%s, after %s: a transfer twice", ledger->engine->name, after);
    db_close(&db);
    return bench->failed == failed;
}
