/*
 * console.h -- standard input and output.
 */
#pragma once

#include "base/base.h"

#define RT_STDIN  0u
#define RT_STDOUT 1u
#define RT_STDERR 2u

bool rt_std_is_tty(u32 stream);
/* Columns of the terminal on that stream, 0 if it is none. */
u32 rt_std_columns(u32 stream);
/* Write all bytes, unbuffered.  ERR_CLOSED: broken pipe.  [parks] */
MUST_CHECK Err rt_std_write(u32 stream, const void *bytes, size_t count);
MUST_CHECK Err rt_std_print(u32 stream, const char *format, ...) PRINTF_LIKE(2, 3);
/* Up to `count` bytes; 0 got: the end.  ERR_INTERRUPT when the task was cancelled.  [parks] */
MUST_CHECK Err rt_std_read(void *bytes, size_t count, size_t *got_out);

/* Lines of standard input, or of a file.  Zero-initialised reads standard input. */
typedef struct RtFile RtFile;
typedef struct RtLines {
    RtFile *file; /* Borrowed; NULL: standard input. */
    Buf buffer;
    size_t at;
    bool at_end;
} RtLines;
/* The next line without its LF (and CR before it); valid until the next call.  *more_out false at
   the end.  [parks] */
MUST_CHECK Err rt_lines_next(RtLines *lines, Slice *line_out, bool *more_out, ErrMsg *msg);
void rt_lines_free(RtLines *lines); /* Frees the buffer, not the file. */
