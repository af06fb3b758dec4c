/*
 * harness.h -- what all groups share: options, engines, seeded numbers, clocks, and rows.
 *
 * A row is one figure of Weft and, where there is one, of a peer, taken in turn over some rounds.
 * Its ratio is how many times as good Weft is, the middle one of the rounds' ratios.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "engine.h"

#define ROUNDS_MAX 15

typedef struct Options {
    const char *weft, *peer, *peer_name, *group, *part, *json, *duckdb;
    const char *device;    /* memory, disk or fixed: what syncs cost; told in the rows. */
    const char *directory; /* Where files are made. */
    int rounds;
    int64_t rows;      /* Of the analytic and shape tables. */
    int64_t accounts;  /* Of the ledger. */
    int warehouses;    /* Of TPC-C: the larger size. */
    int tpch_permille; /* Scale of TPC-H in thousandths. */
    double seconds;    /* Of one run of a load. */
    int connections;   /* At most, in loads. */
    int divisor;       /* Of the repetitions of one connection's workloads. */
} Options;

typedef struct Bench {
    Options options;
    Engine engine[2]; /* Weft and the peer. */
    int engines;      /* 1 if there is no peer. */
    FILE *json;
    int missed, failed; /* Goals not met; wrong answers and errors. */
} Bench;

/* One row.  With `is_rate` more is better, else less.  A goal of 0 is none. */
typedef struct Row {
    char name[80];
    const char *unit;
    const char *peer_name; /* NULL: no peer, and `goal` is nothing. */
    bool is_rate;
    double goal;
    double ours[ROUNDS_MAX], peer[ROUNDS_MAX];
    int rounds;
    char note[160]; /* Latencies and the like, printed and kept. */
} Row;

void row_add(Row *row, double ours, double peer);
void row_show(Bench *bench, Row *row);

/* Report something that makes a run worthless: wrong answers, errors.  The program will fail. */
__attribute__((format(printf, 2, 3))) void bench_fail(Bench *bench, const char *format, ...);

/* Is this row asked for?  --part is a part of its name. */
bool bench_wants(const Bench *bench, const char *name);

double now_s(void);

/* Seeded numbers: state must not be 0. */
uint64_t random_next(uint64_t *state);
int64_t random_between(uint64_t *state, int64_t least, int64_t most);

void sort_doubles(double *values, size_t count);
/* The value at `part` (0 to 1) of sorted values; 0 if there are none. */
double at_part(const double *sorted, size_t count, double part);
