/*
 * tpcc.h -- private: TPC-C's database, its five transactions and its consistency conditions.
 *
 * Money is in cents.  Sizes are the specification's, divided by `divisor` for tests.
 */
#pragma once

#include "load.h"

#define TPCC_DISTRICTS 10
#define TPCC_LINES_MAX 15

typedef struct Tpcc {
    const Engine *engine;
    char path[512];
    int warehouses;
    int64_t items, customers; /* Items in all; customers a district, as many orders at the start. */
    int64_t new_orders;       /* Acknowledged since. */
} Tpcc;

/* Kinds of load.h's latencies. */
enum { TPCC_NEW_ORDER, TPCC_PAYMENT, TPCC_STATUS, TPCC_DELIVERY, TPCC_STOCK, TPCC_KINDS };

void tpcc_fill(Tpcc *tpcc);

/* Conditions 1 to 4 of the specification (3.3.2), and that every acknowledged order is there. */
void tpcc_check(Bench *bench, const Tpcc *tpcc, const char *after);

/* For load.h: prepared statements, one transaction of the standard mix, and their end. */
void tpcc_start(Worker *worker);
void tpcc_operate(Worker *worker);
void tpcc_end(Worker *worker);

/* The specification's non-uniform numbers and last names. */
int64_t tpcc_nurand(uint64_t *state, int64_t a, int64_t least, int64_t most);
int tpcc_last_name(int64_t number, char *out); /* At most 16 bytes; returns its length. */
