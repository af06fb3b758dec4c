/*
 * console.c -- standard streams, unbuffered, and lines over any file.
 */
#include "rt/console.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rt/file.h"
#include "rt/process_impl.h"

#define LINE_READ_BYTES 65536

bool
rt_std_is_tty(u32 stream)
{
    return isatty((int)stream) == 1;
}

u32
rt_std_columns(u32 stream)
{
    struct winsize size;
    return ioctl((int)stream, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

Err
rt_std_write(u32 stream, const void *bytes, size_t count)
{
    const u8 *at = bytes;
    while (count > 0) {
        ssize_t done = write((int)stream, at, count);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && errno == EAGAIN) { /* A descriptor somebody else made non-blocking. */
            struct pollfd poller = {.fd = (int)stream, .events = POLLOUT};
            poll(&poller, 1, -1);
            continue;
        }
        if (done < 0) return errno == EPIPE ? ERR_CLOSED : rt__errno_err(errno, ERR_IO_WRITE);
        at += done;
        count -= (size_t)done;
    }
    return OK;
}

Err
rt_std_print(u32 stream, const char *format, ...)
{
    char small[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    if (length < 0) return ERR_INTERNAL;
    if ((size_t)length < sizeof(small)) return rt_std_write(stream, small, (size_t)length);
    char *large = mem_alloc((size_t)length + 1);
    if (large == NULL) return ERR_NOMEM;
    va_start(args, format);
    vsnprintf(large, (size_t)length + 1, format, args);
    va_end(args);
    Err err = rt_std_write(stream, large, (size_t)length);
    mem_free(large);
    return err;
}

Err
rt_std_read(void *bytes, size_t count, size_t *got_out)
{
    *got_out = 0;
    for (;;) {
        ssize_t got = read(STDIN_FILENO, bytes, count);
        if (got >= 0) {
            *got_out = (size_t)got;
            return OK;
        }
        if (errno == EINTR) {
            if (rt_task_is_cancelled(rt__self())) return ERR_INTERRUPT;
            continue;
        }
        if (errno != EAGAIN) return rt__errno_err(errno, ERR_IO_READ);
        struct pollfd poller = {.fd = STDIN_FILENO, .events = POLLIN};
        poll(&poller, 1, -1);
    }
}

static Err
lines_fill(RtLines *lines, ErrMsg *msg)
{
    Buf *buffer = &lines->buffer;
    size_t got;
    if (lines->at > 0) memmove(buffer->p, buffer->p + lines->at, buffer->bytes - lines->at);
    buffer->bytes -= lines->at;
    lines->at = 0;
    Err err = buf_reserve(buffer, LINE_READ_BYTES);
    if (err != OK) return err;
    u8 *to = buffer->p + buffer->bytes;
    if (lines->file == NULL)
        err = rt_std_read(to, LINE_READ_BYTES, &got);
    else
        err = rt_file_read_next(lines->file, to, LINE_READ_BYTES, &got, msg);
    if (err != OK) return err;
    buffer->bytes += got;
    lines->at_end = got == 0;
    return OK;
}

Err
rt_lines_next(RtLines *lines, Slice *line_out, bool *more_out, ErrMsg *msg)
{
    Buf *buffer = &lines->buffer;
    size_t searched = 0;
    *line_out = SLICE_NONE;
    *more_out = false;
    for (;;) {
        u8 *from = buffer->p == NULL ? NULL : buffer->p + lines->at;
        size_t count = buffer->bytes - lines->at;
        u8 *end = count > searched ? memchr(from + searched, '\n', count - searched) : NULL;
        if (end == NULL && !lines->at_end) {
            searched = count;
            Err err = lines_fill(lines, msg);
            if (err != OK) return err;
            continue;
        }
        if (count == 0) return OK;
        size_t bytes = end != NULL ? (size_t)(end - from) : count;
        lines->at += end != NULL ? bytes + 1 : bytes;
        if (bytes > 0 && from[bytes - 1] == '\r') bytes--;
        *line_out = (Slice){from, bytes};
        *more_out = true;
        return OK;
    }
}

void
rt_lines_free(RtLines *lines)
{
    buf_free(&lines->buffer);
    *lines = (RtLines){0};
}
