/*
 * misuse.h -- what misuse.c and its generated calls share.
 */
#pragma once

#include "sqlite3.h"

typedef struct Handles {
    sqlite3 *db;
    sqlite3_stmt *stmt;
    sqlite3_value *value;
    sqlite3_mutex *mutex;
    sqlite3_str *str;
} Handles;

typedef struct Call {
    const char *name;
    void (*call)(const Handles *h, long long number);
} Call;

extern const Call calls[];
