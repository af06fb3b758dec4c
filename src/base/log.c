/*
 * log.c -- hands formatted lines to the sink of the program.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static LogSink log_sink;
static void *log_arg;
static LogLevel log_limit;

void
log_set_sink(LogSink sink, void *arg, LogLevel most_verbose)
{
    log_sink = sink;
    log_arg = arg;
    log_limit = most_verbose;
}

void
log_line(LogLevel level, const char *format, ...)
{
    if (log_sink == NULL || level > log_limit) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    log_sink(log_arg, level, text);
}
