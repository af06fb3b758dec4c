/*
 * format.c -- result sets in the shell's output modes.
 *
 * Modes without aligned columns print each row as it comes; the aligned ones keep the rows in an
 * arena until the widths are known.  Widths count characters, not bytes.
 */
#include <stdio.h>
#include <string.h>

#include "shell/shell.h"

#define LINE_NAME_MIN 5 /* Narrowest column of names in line mode. */

typedef struct ModeFacts {
    const char *name, *separator, *row_separator;
    bool aligned, headers;
} ModeFacts;

static const ModeFacts modes[MODE_COUNT_] = {
    [MODE_LIST] = {"list", "|", "\n", false, false},
    [MODE_COLUMN] = {"column", "  ", "\n", true, true},
    [MODE_BOX] = {"box", "", "\n", true, true},
    [MODE_TABLE] = {"table", "", "\n", true, true},
    [MODE_MARKDOWN] = {"markdown", "", "\n", true, true},
    [MODE_CSV] = {"csv", ",", "\r\n", false, false},
    [MODE_JSON] = {"json", "", "\n", false, false},
    [MODE_LINE] = {"line", " = ", "\n", false, false},
    [MODE_INSERT] = {"insert", ",", "\n", false, false},
    [MODE_QUOTE] = {"quote", ",", "\n", false, false},
    [MODE_TABS] = {"tabs", "\t", "\n", false, false},
};

const char *
mode_name(u8 mode)
{
    return modes[mode].name;
}

bool
mode_set(Shell *shell, const char *name)
{
    size_t bytes = strlen(name);
    for (u8 mode = 0; mode < MODE_COUNT_; mode++) {
        /* "columns", "lines" and shortened names are understood too. */
        bool same = strncmp(modes[mode].name, name, bytes) == 0 ||
                    (strlen(modes[mode].name) + 1 == bytes && name[bytes - 1] == 's' &&
                     strncmp(modes[mode].name, name, bytes - 1) == 0);
        if (!same || bytes == 0) continue;
        shell->mode = mode;
        snprintf(shell->separator, sizeof(shell->separator), "%s", modes[mode].separator);
        snprintf(shell->row_separator, sizeof(shell->row_separator), "%s",
                 modes[mode].row_separator);
        return true;
    }
    return false;
}

/* ---- tables ---- */

typedef struct KeptRow {
    struct KeptRow *next;
    Slice cell[];
} KeptRow;

struct Table {
    Shell *shell;
    u32 columns;
    const char **name;
    Arena arena;
    u64 rows;
    KeptRow *first, **last; /* Aligned modes. */
    u32 *width;
    bool several_lines; /* Some cell holds a line end: rows are set apart. */
};

static bool
headers_on(const Shell *shell)
{
    return shell->headers_set ? shell->headers : modes[shell->mode].headers;
}

static void
widen(Table *table, u32 column, Slice text)
{
    while (text.bytes > 0) {
        const u8 *end = memchr(text.p, '\n', text.bytes);
        size_t bytes = end != NULL ? (size_t)(end - text.p) : text.bytes;
        u32 width = (u32)utf8_count(text.p, bytes);
        if (width > table->width[column]) table->width[column] = width;
        bytes = MIN_OF(bytes + 1, text.bytes);
        text = (Slice){text.p + bytes, text.bytes - bytes};
    }
}

static void
csv_cell(Shell *shell, Slice text)
{
    bool quote = text.bytes == 0;
    size_t separator = strlen(shell->separator);
    for (size_t i = 0; i < text.bytes && !quote; i++) {
        u8 c = text.p[i];
        quote = c <= ' ' || c >= 0x7f || c == '"' || c == '\'' ||
                (separator > 0 && text.bytes - i >= separator &&
                 memcmp(text.p + i, shell->separator, separator) == 0);
    }
    if (!quote) {
        out_bytes(shell, text.p, text.bytes);
        return;
    }
    out_text(shell, "\"");
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.p[i] == '"') out_text(shell, "\"");
        out_bytes(shell, text.p + i, 1);
    }
    out_text(shell, "\"");
}

static void
json_string(Shell *shell, Slice text)
{
    static const char digits[] = "0123456789abcdef";
    out_text(shell, "\"");
    for (size_t i = 0; i < text.bytes; i++) {
        u8 c = text.p[i];
        const char *escape = c == '"'    ? "\\\""
                             : c == '\\' ? "\\\\"
                             : c == '\b' ? "\\b"
                             : c == '\f' ? "\\f"
                             : c == '\n' ? "\\n"
                             : c == '\r' ? "\\r"
                             : c == '\t' ? "\\t"
                                         : NULL;
        char unicode[7] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15], 0};
        if (escape != NULL)
            out_text(shell, escape);
        else if (c < ' ')
            out_text(shell, unicode);
        else
            out_bytes(shell, &c, 1);
    }
    out_text(shell, "\"");
}

static void
header_row(Table *table)
{
    Shell *shell = table->shell;
    for (u32 i = 0; i < table->columns; i++) {
        Slice name = SLICE(table->name[i], strlen(table->name[i]));
        if (i > 0) out_text(shell, shell->separator);
        if (shell->mode == MODE_CSV)
            csv_cell(shell, name);
        else if (shell->mode == MODE_QUOTE)
            out_literal(shell, &(LinkValue){.type = WEFT_TEXT, .text = name});
        else
            out_bytes(shell, name.p, name.bytes);
    }
    out_text(shell, shell->row_separator);
}

Table *
table_begin(Shell *shell, u32 column_count, const char *const *names)
{
    Table *table = MEM_NEW(Table);
    if (table == NULL) return NULL;
    *table = (Table){.shell = shell, .columns = column_count};
    table->last = &table->first;
    arena_init(&table->arena, NULL);
    table->width = ARENA_NEW_ARRAY(&table->arena, u32, column_count + 1);
    table->name = ARENA_NEW_ARRAY(&table->arena, const char *, column_count + 1);
    bool good = table->width != NULL && table->name != NULL;
    for (u32 i = 0; i < column_count && good; i++) {
        size_t bytes = strlen(names[i]);
        table->name[i] = arena_strndup(&table->arena, names[i], bytes);
        good = table->name[i] != NULL;
        if (good) widen(table, i, SLICE(names[i], bytes));
    }
    if (!good) {
        arena_free(&table->arena);
        mem_free(table);
        return NULL;
    }
    return table;
}

/* ---- rows that are printed at once ---- */

static void
listed_row(Table *table, const LinkValue *values)
{
    Shell *shell = table->shell;
    char room[40];
    if (table->rows == 0 && headers_on(shell)) header_row(table);
    for (u32 i = 0; i < table->columns; i++) {
        Slice text = value_text(shell, &values[i], room);
        if (i > 0) out_text(shell, shell->separator);
        if (shell->mode == MODE_QUOTE)
            out_literal(shell, &values[i]);
        else if (shell->mode == MODE_CSV && values[i].type != WEFT_NULL)
            csv_cell(shell, text);
        else
            out_bytes(shell, text.p, text.bytes);
    }
    out_text(shell, shell->row_separator);
}

static void
json_row(Table *table, const LinkValue *values)
{
    Shell *shell = table->shell;
    char room[40];
    out_text(shell, table->rows == 0 ? "[{" : ",\n{");
    for (u32 i = 0; i < table->columns; i++) {
        if (i > 0) out_text(shell, ",");
        json_string(shell, SLICE(table->name[i], strlen(table->name[i])));
        out_text(shell, ":");
        switch (values[i].type) {
        case WEFT_INTEGER:
        case WEFT_FLOAT: out_literal(shell, &values[i]); break;
        case WEFT_NULL: out_text(shell, "null"); break;
        default: json_string(shell, value_text(shell, &values[i], room)); break;
        }
    }
    out_text(shell, "}");
}

static void
line_row(Table *table, const LinkValue *values)
{
    Shell *shell = table->shell;
    char room[40];
    u32 widest = LINE_NAME_MIN;
    for (u32 i = 0; i < table->columns; i++)
        widest = MAX_OF(widest, table->width[i]);
    if (table->rows > 0) out_text(shell, shell->row_separator);
    for (u32 i = 0; i < table->columns; i++) {
        Slice text = value_text(shell, &values[i], room);
        out_printf(shell, "%*s%s%s", (int)(widest - table->width[i]), "", table->name[i],
                   shell->separator);
        out_bytes(shell, text.p, text.bytes);
        out_text(shell, shell->row_separator);
    }
}

static void
insert_row(Table *table, const LinkValue *values)
{
    Shell *shell = table->shell;
    out_text(shell, "INSERT INTO ");
    out_name(shell, shell->insert_table[0] != 0 ? shell->insert_table : "table");
    if (headers_on(shell)) {
        out_text(shell, "(");
        for (u32 i = 0; i < table->columns; i++) {
            if (i > 0) out_text(shell, ",");
            out_name(shell, table->name[i]);
        }
        out_text(shell, ")");
    }
    out_text(shell, " VALUES(");
    for (u32 i = 0; i < table->columns; i++) {
        if (i > 0) out_text(shell, ",");
        out_literal(shell, &values[i]);
    }
    out_text(shell, ");\n");
}

static bool
keep_row(Table *table, const LinkValue *values)
{
    char room[40];
    KeptRow *row = arena_alloc(&table->arena,
                               sizeof(KeptRow) + table->columns * sizeof(row->cell[0]));
    if (row == NULL) return false;
    for (u32 i = 0; i < table->columns; i++) {
        Slice text = value_text(table->shell, &values[i], room);
        u8 *copy = arena_bytes(&table->arena, text.bytes + 1);
        if (copy == NULL) return false;
        memcpy(copy, text.p, text.bytes);
        row->cell[i] = (Slice){copy, text.bytes};
        if (memchr(copy, '\n', text.bytes) != NULL) table->several_lines = true;
        widen(table, i, row->cell[i]);
    }
    *table->last = row;
    table->last = &row->next;
    return true;
}

bool
table_row(Table *table, const LinkValue *values)
{
    Shell *shell = table->shell;
    bool good = !shell->out_failed;
    switch ((Mode)shell->mode) {
    case MODE_COLUMN:
    case MODE_BOX:
    case MODE_TABLE:
    case MODE_MARKDOWN: good = keep_row(table, values); break;
    case MODE_JSON: json_row(table, values); break;
    case MODE_LINE: line_row(table, values); break;
    case MODE_INSERT: insert_row(table, values); break;
    case MODE_LIST:
    case MODE_CSV:
    case MODE_QUOTE:
    case MODE_TABS:
    case MODE_COUNT_: listed_row(table, values); break;
    }
    table->rows++;
    return good && rt_load_relaxed(&shell->interrupted) == 0;
}

/* ---- aligned modes ---- */

typedef struct Frame {
    const char *left, *between, *right; /* Around the cells of a row. */
    const char *rule[3];                /* Above, below the names, below. */
    const char *rule_start[3], *rule_cross[3], *rule_end[3];
    u32 rule_extra; /* Rule marks beyond the width of a column. */
} Frame;

static const Frame frames[MODE_COUNT_] = {
    [MODE_COLUMN] = {.left = "",
                     .between = "  ",
                     .right = "\n",
                     .rule = {NULL, "-", NULL},
                     .rule_start = {"", "", ""},
                     .rule_cross = {"", "  ", ""},
                     .rule_end = {"", "\n", ""}},
    [MODE_TABLE] = {.left = "| ",
                    .between = " | ",
                    .right = " |\n",
                    .rule = {"-", "-", "-"},
                    .rule_start = {"+", "+", "+"},
                    .rule_cross = {"+", "+", "+"},
                    .rule_end = {"+\n", "+\n", "+\n"},
                    .rule_extra = 2},
    [MODE_MARKDOWN] = {.left = "| ",
                       .between = " | ",
                       .right = " |\n",
                       .rule = {NULL, "-", NULL},
                       .rule_start = {"", "|", ""},
                       .rule_cross = {"", "|", ""},
                       .rule_end = {"", "|\n", ""},
                       .rule_extra = 2},
    [MODE_BOX] = {.left = "│ ",
                  .between = " │ ",
                  .right = " │\n",
                  .rule = {"─", "─", "─"},
                  .rule_start = {"┌", "├", "└"},
                  .rule_cross = {"┬", "┼", "┴"},
                  .rule_end = {"┐\n", "┤\n", "┘\n"},
                  .rule_extra = 2},
};

static void
spaces(Shell *shell, u32 count)
{
    for (; count > 0; count--)
        out_text(shell, " ");
}

static void
rule(Table *table, const Frame *frame, u32 which)
{
    Shell *shell = table->shell;
    if (frame->rule[which] == NULL) return;
    out_text(shell, frame->rule_start[which]);
    for (u32 i = 0; i < table->columns; i++) {
        if (i > 0) out_text(shell, frame->rule_cross[which]);
        for (u32 n = table->width[i] + frame->rule_extra; n > 0; n--)
            out_text(shell, frame->rule[which]);
    }
    out_text(shell, frame->rule_end[which]);
}

/* Line `number` of a cell that may hold several; empty beyond its last. */
static Slice
cell_line(Slice text, u32 number, bool *more)
{
    for (;;) {
        const u8 *end = text.bytes > 0 ? memchr(text.p, '\n', text.bytes) : NULL;
        size_t bytes = end != NULL ? (size_t)(end - text.p) : text.bytes;
        if (number == 0) {
            *more = *more || end != NULL;
            return (Slice){text.p, bytes};
        }
        if (end == NULL) return SLICE_NONE;
        text = (Slice){end + 1, text.bytes - bytes - 1};
        number--;
    }
}

static void
aligned_row(Table *table, const Frame *frame, const Slice *cells, bool centered)
{
    Shell *shell = table->shell;
    bool more = true;
    for (u32 number = 0; more; number++) {
        more = false;
        out_text(shell, frame->left);
        for (u32 i = 0; i < table->columns; i++) {
            Slice text = cell_line(cells[i], number, &more);
            u32 room = table->width[i] - (u32)utf8_count(text.p, text.bytes);
            if (i > 0) out_text(shell, frame->between);
            spaces(shell, centered ? room / 2 : 0);
            out_bytes(shell, text.p, text.bytes);
            spaces(shell, centered ? (room + 1) / 2 : room);
        }
        out_text(shell, frame->right);
    }
}

static void
aligned_table(Table *table)
{
    Shell *shell = table->shell;
    const Frame *frame = &frames[shell->mode];
    bool named = shell->mode != MODE_COLUMN || headers_on(shell);
    if (table->rows == 0) return;
    if (named) {
        Slice *names = ARENA_NEW_ARRAY(&table->arena, Slice, table->columns);
        if (names == NULL) return;
        for (u32 i = 0; i < table->columns; i++)
            names[i] = SLICE(table->name[i], strlen(table->name[i]));
        rule(table, frame, 0);
        aligned_row(table, frame, names, shell->mode != MODE_COLUMN);
        rule(table, frame, 1);
    }
    for (KeptRow *row = table->first; row != NULL; row = row->next) {
        if (table->several_lines && row != table->first) {
            if (shell->mode == MODE_COLUMN)
                out_text(shell, "\n");
            else
                rule(table, frame, 1);
        }
        aligned_row(table, frame, row->cell, false);
    }
    rule(table, frame, 2);
}

void
table_end(Table *table)
{
    if (table == NULL) return;
    if (modes[table->shell->mode].aligned)
        aligned_table(table);
    else if (table->shell->mode == MODE_JSON && table->rows > 0)
        out_text(table->shell, "]\n");
    arena_free(&table->arena);
    mem_free(table);
}
