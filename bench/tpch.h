/*
 * tpch.h -- private: TPC-H's queries, part of T=analytic.
 */
#pragma once

#include "single.h"

void tpch_run(Bench *bench);
