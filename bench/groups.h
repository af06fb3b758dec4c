/*
 * groups.h -- one function a group of rows; each checks its answers before its times count.
 */
#pragma once

#include "harness.h"

void shape_group(Bench *bench);
void analytic_group(Bench *bench);
void habit_group(Bench *bench);
void ledger_group(Bench *bench);
void tpcc_group(Bench *bench);
void queue_group(Bench *bench);
