/*
 * engine.c -- dlopen and dlsym of what engine.h lists.
 */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static bool
find(Engine *engine, const char *name, void *slot)
{
    char symbol[64];
    snprintf(symbol, sizeof(symbol), "sqlite3_%s", name);
    void *address = dlsym(engine->handle, symbol);
    memcpy(slot, &address, sizeof(address));
    if (address == NULL) fprintf(stderr, "%s: no %s\n", engine->name, symbol);
    return address != NULL;
}

bool
engine_load(Engine *engine, const char *name, const char *path)
{
    engine->name = name;
    engine->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (engine->handle == NULL) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        return false;
    }
    return find(engine, "open_v2", &engine->open_v2) &&
           find(engine, "close_v2", &engine->close_v2) && find(engine, "exec", &engine->exec) &&
           find(engine, "prepare_v2", &engine->prepare_v2) && find(engine, "step", &engine->step) &&
           find(engine, "reset", &engine->reset) && find(engine, "finalize", &engine->finalize) &&
           find(engine, "bind_int64", &engine->bind_int64) &&
           find(engine, "bind_double", &engine->bind_double) &&
           find(engine, "bind_text", &engine->bind_text) &&
           find(engine, "column_int64", &engine->column_int64) &&
           find(engine, "column_double", &engine->column_double) &&
           find(engine, "column_text", &engine->column_text) &&
           find(engine, "errmsg", &engine->errmsg) &&
           find(engine, "libversion", &engine->libversion);
}
