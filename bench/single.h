/*
 * single.h -- workloads of one connection in memory: a statement and what is done with it.
 */
#pragma once

#include "db.h"
#include "harness.h"

typedef struct Run {
    Db db;
    char path[512]; /* Of its file, or ":memory:". */
    int64_t rows;
    uint64_t state; /* Seeded numbers. */
    const Options *options;
    const struct Workload *work;
} Run;

typedef struct Workload {
    const char *name; /* group.name */
    const char *sql;  /* The statement measured; NULL: `work` does it all. */
    int64_t times;    /* Operations in one measurement. */
    int64_t (*work)(Run *run, sqlite3_stmt *stmt, int64_t times); /* A number from the answers. */
    bool in_transaction;
    double goal;
} Workload;

/* Open both engines' connections and fill them the same: on files of this name, or in memory. */
void single_open(Bench *bench, Run run[2], const char *file, void (*fill)(Run *run));
void single_close(Bench *bench, Run run[2]);

/* Run all workloads of the list in turn on both engines.  Different answers fail. */
void single_run(Bench *bench, Run run[2], const Workload *works, size_t count);

/* Table t: k integer key, a random, b one of 100, c text of 10, d real, e one of 10,000, n null in
   one row of ten; s a small one of 10,000 rows; w wide; x to insert into; o with a key of three
   columns. */
void single_fill_tables(Run *run);

/* ---- what is done with a statement ---- */

/* Bind a random key of 1 to 10,000, take the first column of all rows. */
int64_t by_random_key(Run *run, sqlite3_stmt *stmt, int64_t times);
/* Three parameters: a random key of table o. */
int64_t by_three_columns(Run *run, sqlite3_stmt *stmt, int64_t times);
/* All rows, their first column. */
int64_t all_rows(Run *run, sqlite3_stmt *stmt, int64_t times);
/* All rows, all columns, by type; reals are rounded. */
int64_t all_columns(Run *run, sqlite3_stmt *stmt, int64_t times);
