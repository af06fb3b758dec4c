/*
 * ledger.h -- private: the ledger's database and its books.
 */
#pragma once

#include "load.h"

typedef struct Ledger {
    const Engine *engine;
    char path[512];
    int64_t accounts, seeded;  /* Rows at the start. */
    int64_t transfers, events; /* Acknowledged since. */
} Ledger;

void ledger_fill(Ledger *ledger);

/* Are the books in balance?  Reports each rule that is broken.  `deep` compares every account. */
bool ledger_audit(Bench *bench, const Ledger *ledger, const char *after, bool deep);
