/* engine.c -- see engine.h. */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef struct EngineName {
    const char *name;
    size_t offset;
} EngineName;

#define NAME(field, name)                        \
    {                                            \
        "sqlite3_" name, offsetof(Engine, field) \
    }

static const EngineName engine_names[] = {
    NAME(open, "open"),
    NAME(close, "close"),
    NAME(exec, "exec"),
    NAME(free, "free"),
    NAME(prepare, "prepare_v2"),
    NAME(step, "step"),
    NAME(finalize, "finalize"),
    NAME(column_count, "column_count"),
    NAME(column_type, "column_type"),
    NAME(column_int64, "column_int64"),
    NAME(column_double, "column_double"),
    NAME(column_text, "column_text"),
    NAME(errmsg, "errmsg"),
    NAME(version, "libversion"),
};

bool
engine_load(Engine *engine, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "slt: %s\n", dlerror());
        return false;
    }
    for (size_t i = 0; i < COUNT_OF(engine_names); i++) {
        void *function = dlsym(library, engine_names[i].name);
        if (function == NULL) {
            fprintf(stderr, "slt: %s has no %s\n", path, engine_names[i].name);
            return false;
        }
        memcpy((char *)engine + engine_names[i].offset, &function, sizeof(function));
    }
    return true;
}
