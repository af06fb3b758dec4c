/*
 * log.h -- one line of structured log.  The sink is set by the program; default: nothing.
 */
#pragma once

#include "base/types.h"

typedef enum LogLevel { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } LogLevel;
typedef void (*LogSink)(void *arg, LogLevel level, const char *text);

void log_set_sink(LogSink sink, void *arg, LogLevel most_verbose);
void log_line(LogLevel level, const char *format, ...) PRINTF_LIKE(2, 3);
