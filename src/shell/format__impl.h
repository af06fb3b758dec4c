/*
 * format__impl.h -- what the files of result printing share; private to format*.c.
 */
#pragma once

#include "shell/shell.h"

/* A cell as lines of what is shown: cut at line ends and at the widest a column may be. */
typedef struct KeptCell {
    const Slice *line;
    u32 lines;
} KeptCell;

typedef struct KeptRow {
    struct KeptRow *next;
    KeptCell cell[];
} KeptRow;

struct Table {
    Shell *shell;
    u32 columns;
    const char **name;
    Arena arena;
    u64 rows;
    u32 *width; /* Of line mode: characters of the names. */
    /* Aligned modes. */
    KeptRow *first, **last;
    bool several_lines; /* Some cell has several lines: rows are set apart. */
    Buf scratch;
};

bool format__headers(const Shell *shell);
/* format_aligned.c: keep a row; print all. */
bool format__keep(Table *table, const LinkValue *values);
void format__aligned(Table *table);
