/*
 * io_script.h -- every kind of file and socket call once, for the tests that let each fail.
 *
 * The first error ends a script; it closes what it opened.  The directory must exist and is left
 * empty by io_script_clean().
 */
#pragma once

#include "base/base.h"

Err io_script_files(const char *dir, ErrMsg *msg);
void io_script_clean(const char *dir);
Err io_script_sockets(void);
