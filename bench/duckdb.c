/*
 * duckdb.c -- DuckDB by dlopen.
 */
#include "duckdb.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
duck_open(Duck *duck, const char *library)
{
    bool is_whole = true;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "duckdb: %s\n", dlerror());
        return false;
    }
#define X(function, result, arguments)                                             \
    do {                                                                           \
        void *address = dlsym(handle, "duckdb_" #function);                        \
        memcpy(&duck->function, &address, sizeof(address));                        \
        if (address == NULL) fprintf(stderr, "duckdb: no duckdb_%s\n", #function); \
        is_whole = is_whole && address != NULL;                                    \
    } while (0);
    DUCK_FUNCTIONS(X)
#undef X
    if (!is_whole) return false;
    return duck->open(NULL, &duck->database) == 0 &&
           duck->connect(duck->database, &duck->connection) == 0;
}

void
duck_close(Duck *duck)
{
    duck->disconnect(&duck->connection);
    duck->close(&duck->database);
}

void
duck_exec(Duck *duck, const char *sql)
{
    DuckResult result;
    if (duck->query(duck->connection, sql, &result) != 0) {
        fprintf(stderr, "duckdb: %s: %s\n", sql, duck->result_error(&result));
        exit(1);
    }
    duck->destroy_result(&result);
}
