/*
 * command.h -- commands of the system's shell, and what else a program in a terminal asks of it.
 */
#pragma once

#include "rt/file.h"

/*
 * Run `command` with /bin/sh and wait for its end.  `input`, `output`: files for its standard input
 * (read from the start) and output; NULL: those of this program.  *status_out: its exit status, 128
 * and the signal's number if it was killed.  ERR_IO when it could not be started.  [parks]
 */
MUST_CHECK Err rt_command_run(const char *command, RtFile *input, RtFile *output, int *status_out,
                              ErrMsg *msg);
/* rt_file_read_next() goes on from the start of the file. */
MUST_CHECK Err rt_file_rewind(RtFile *file);
/* Change the working directory of the process.  ERR_NOTFOUND, ERR_PERM, ERR_IO. */
MUST_CHECK Err rt_change_dir(const char *path);
/* CPU time that the process has used so far. */
void rt_cpu_times(u64 *user_us_out, u64 *system_us_out);
