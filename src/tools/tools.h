/*
 * tools.h -- programs within the program: what `weft import`, `export` and `dump-page` do.
 *
 * Each takes its own arguments (without the program's and the command's names) and returns the exit
 * status: 0 all is there; 2 (salvage) the target was made but something is missing; 1 an error, and
 * the target does not exist.  Messages go to standard error.
 */
#pragma once

#include "base/base.h"

/* weft import [options] APP.db APP.weft */
int tools_import(int argc, char **argv);
/* weft export [options] APP.weft APP.db */
int tools_export(int argc, char **argv);
/* weft dump-page APP.weft [PAGE | slot N] */
int tools_dump_page(int argc, char **argv);
