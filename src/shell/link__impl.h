/*
 * link__impl.h -- the two kinds of links share this layout; private to link.c and link_server.c.
 */
#pragma once

#include "shell/link.h"

typedef struct LinkKind {
    void (*close)(Link *link);
    void (*interrupt)(Link *link);
    bool (*run)(Link *link, Slice sql, const LinkSink *sink, LinkParam param, void *param_arg,
                LinkError *error_out);
    i64 (*changes)(Link *link);
    LinkLoad *(*load_begin)(Link *link, const char *sql, u32 columns, LinkError *error_out);
    bool (*load_row)(LinkLoad *load, const LinkValue *values, LinkError *error_out);
    bool (*load_end)(LinkLoad *load, bool keep, LinkError *error_out);
} LinkKind;

struct Link {
    const LinkKind *kind;
};

struct LinkLoad {
    Link *link;
    u32 columns;
};

/* Set the error and return false. */
bool link__fail(LinkError *error_out, int code, i64 offset, bool while_running, const char *text);
