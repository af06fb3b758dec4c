/*
 * shape.h -- private: the statement shapes, for one thread and for many.
 */
#pragma once

#include "harness.h"

typedef struct ShapeSql {
    const char *name, *sql;
    int64_t times; /* Operations in one measurement of one thread. */
    double goal;   /* Of one thread. */
    bool three;    /* Its parameters are a key of three columns, else one random key. */
    bool writes;   /* In a transaction of its own times. */
} ShapeSql;

extern const ShapeSql shape_sql[];
extern const size_t shape_sql_count;

/* The same shapes by 2 and 16 threads, each with a connection, on files. */
void shape_threads(Bench *bench);
