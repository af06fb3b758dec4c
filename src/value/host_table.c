/*
 * host_table.c -- the mark of arguments that stay as they are.
 */
#include "value/host_table.h"

const char host_unchanged[] = "unchanged";
