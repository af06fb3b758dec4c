/*
 * engine.c -- dlopen and dlsym of what engine.h lists.
 */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool
engine_load(Engine *engine, const char *name, const char *path)
{
    bool is_whole = true;
    engine->name = name;
    engine->is_weft = strcmp(name, "weft") == 0;
    engine->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (engine->handle == NULL) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        return false;
    }
#define X(function, result, arguments)                                                \
    do {                                                                              \
        void *address = dlsym(engine->handle, "sqlite3_" #function);                  \
        memcpy(&engine->function, &address, sizeof(address));                         \
        if (address == NULL) fprintf(stderr, "%s: no sqlite3_%s\n", name, #function); \
        is_whole = is_whole && address != NULL;                                       \
    } while (0);
    ENGINE_FUNCTIONS(X)
#undef X
    void *address = dlsym(engine->handle, "sqlite3_carray_bind");
    memcpy(&engine->carray_bind, &address, sizeof(address));
    return is_whole;
}
