/*
 * engine.c -- dlopen and dlsym of what engine.h lists.
 */
#include "engine.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The address of a function into `to`, which has the size of one; NULL if there is none. */
static void
find(void *handle, const char *name, void *to)
{
    void *address = dlsym(handle, name);
    memcpy(to, &address, sizeof(address));
}

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
    find(engine->handle, "sqlite3_carray_bind", &engine->carray_bind);
    /* libsqlite3.so.0 stands on libweft.so, which a handle's search reaches too. */
    find(engine->handle, "weft_open", &engine->native_open);
    find(engine->handle, "weft_close", &engine->native_close);
    find(engine->handle, "weft_prepare", &engine->native_prepare);
    find(engine->handle, "weft_finalize", &engine->native_finalize);
    find(engine->handle, "weft_fetch", &engine->native_fetch);
    return is_whole;
}

#define POLLS_MAX 10000000

int
engine_poll_busy(void *arg, int times)
{
    (void)arg;
    if (times < 4) {
        sched_yield();
    } else {
        usleep(20);
    }
    return times < POLLS_MAX;
}
