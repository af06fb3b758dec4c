/*
 * format.c -- result sets in the shell's output modes.
 *
 * Modes without aligned columns print each row as it comes; the aligned ones keep the rows in an
 * arena until the widths are known.  Widths count characters, not bytes.
 */
#include <stdio.h>
#include <string.h>

#include "shell/format__impl.h"

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
    [MODE_ASCII] = {"ascii", "\x1f", "\x1e", false, false},
    [MODE_HTML] = {"html", "", "\n", false, false},
    [MODE_TCL] = {"tcl", " ", "\n", false, false},
};

const char *
mode_name(u8 mode)
{
    return modes[mode].name;
}

bool
mode_is_aligned(u8 mode)
{
    return modes[mode].aligned;
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

bool
format__headers(const Shell *shell)
{
    return shell->headers_set ? shell->headers : modes[shell->mode].headers;
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
html_text(Shell *shell, Slice text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        u8 c = text.p[i];
        const char *entity = c == '<'    ? "&lt;"
                             : c == '>'  ? "&gt;"
                             : c == '&'  ? "&amp;"
                             : c == '"'  ? "&quot;"
                             : c == '\'' ? "&#39;"
                                         : NULL;
        if (entity != NULL)
            out_text(shell, entity);
        else
            out_bytes(shell, &c, 1);
    }
}

/* A string as C and Tcl write it. */
static void
tcl_text(Shell *shell, Slice text)
{
    out_text(shell, "\"");
    for (size_t i = 0; i < text.bytes; i++) {
        u8 c = text.p[i];
        const char *escape = c == '"'    ? "\\\""
                             : c == '\\' ? "\\\\"
                             : c == '\t' ? "\\t"
                             : c == '\n' ? "\\n"
                             : c == '\r' ? "\\r"
                                         : NULL;
        if (escape != NULL)
            out_text(shell, escape);
        else if (c < ' ' || c >= 0x7f)
            out_printf(shell, "\\%03o", c);
        else
            out_bytes(shell, &c, 1);
    }
    out_text(shell, "\"");
}

static void
html_row(Shell *shell, u32 count, const Slice *cells, const char *tag)
{
    out_text(shell, "<TR>");
    for (u32 i = 0; i < count; i++) {
        out_printf(shell, "<%s>", tag);
        html_text(shell, cells[i]);
        out_printf(shell, "</%s>\n", tag);
    }
    out_text(shell, "</TR>\n");
}

static void
html_table_row(Table *table, const LinkValue *values)
{
    Shell *shell = table->shell;
    ArenaMark mark = arena_mark(&table->arena);
    Slice *cells = ARENA_NEW_ARRAY(&table->arena, Slice, table->columns + 1);
    char(*room)[40] = arena_alloc(&table->arena, table->columns * sizeof(*room) + 1);
    if (cells == NULL || room == NULL) return;
    if (table->rows == 0 && format__headers(shell)) {
        for (u32 i = 0; i < table->columns; i++)
            cells[i] = SLICE(table->name[i], strlen(table->name[i]));
        html_row(shell, table->columns, cells, "TH");
    }
    for (u32 i = 0; i < table->columns; i++)
        cells[i] = value_text(shell, &values[i], room[i]);
    html_row(shell, table->columns, cells, "TD");
    arena_rewind(&table->arena, mark);
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
        else if (shell->mode == MODE_TCL)
            tcl_text(shell, name);
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
        if (good) table->width[i] = (u32)utf8_count((const u8 *)names[i], bytes);
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
    if (table->rows == 0 && format__headers(shell)) header_row(table);
    for (u32 i = 0; i < table->columns; i++) {
        Slice text = value_text(shell, &values[i], room);
        if (i > 0) out_text(shell, shell->separator);
        if (shell->mode == MODE_QUOTE)
            out_literal(shell, &values[i]);
        else if (shell->mode == MODE_CSV && values[i].type != WEFT_NULL)
            csv_cell(shell, text);
        else if (shell->mode == MODE_TCL)
            tcl_text(shell, text);
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
    if (format__headers(shell)) {
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
        out_line_literal(shell, &values[i]);
    }
    out_text(shell, ");\n");
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
    case MODE_MARKDOWN: good = format__keep(table, values); break;
    case MODE_JSON: json_row(table, values); break;
    case MODE_LINE: line_row(table, values); break;
    case MODE_INSERT: insert_row(table, values); break;
    case MODE_HTML: html_table_row(table, values); break;
    case MODE_LIST:
    case MODE_CSV:
    case MODE_QUOTE:
    case MODE_TABS:
    case MODE_ASCII:
    case MODE_TCL:
    case MODE_COUNT_: listed_row(table, values); break;
    }
    table->rows++;
    return good && rt_load_relaxed(&shell->interrupted) == 0;
}

void
table_end(Table *table)
{
    if (table == NULL) return;
    if (modes[table->shell->mode].aligned)
        format__aligned(table);
    else if (table->shell->mode == MODE_JSON && table->rows > 0)
        out_text(table->shell, "]\n");
    arena_free(&table->arena);
    buf_free(&table->scratch);
    mem_free(table);
}
