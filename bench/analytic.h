/*
 * analytic.h -- private: the analytic questions, asked of DuckDB too.
 */
#pragma once

#include "single.h"

extern const Workload analytic_works[];
extern const size_t analytic_works_count;

/* Weft's tables of `run` copied into DuckDB, and each question asked of both. */
void analytic_duckdb(Bench *bench, Run *run);
