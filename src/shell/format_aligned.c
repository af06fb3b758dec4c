/*
 * format_aligned.c -- result sets in columns: the rows wait in an arena until the widths are known.
 *
 * A cell is cut into the lines it will have when it is kept: at line ends, and where the column may
 * not be wider.  Widths count characters, not bytes.
 */
#include <string.h>

#include "shell/format__impl.h"

#define TAB_STOPS 8u

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

/* ---- cutting cells into lines ---- */

static bool
is_space(u8 c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
is_word(u8 c)
{
    return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Where to cut a text that is longer than its line's `bytes`: behind a space, else between a word
   and what is none, but not in the first half; else at `bytes`. */
static size_t
word_end(Slice text, size_t bytes)
{
    size_t at = bytes;
    while (at > bytes / 2 && !is_space(text.p[at - 1]))
        at--;
    if (at > bytes / 2) return at;
    for (at = bytes; at > bytes / 2; at--) {
        bool boundary = is_word(text.p[at - 1]) != is_word(text.p[at]);
        if (boundary && (text.p[at] & 0xC0) != 0x80) return at;
    }
    return bytes;
}

/* The next line of a text into scratch, tabs as spaces; the text moves behind it. */
static Err
line_take(Table *table, Slice *text, u32 most)
{
    u32 shown = 0;
    size_t at = 0;
    Err err = OK;
    buf_clear(&table->scratch);
    while (err == OK && at < text->bytes && text->p[at] != '\n' && shown < most) {
        u8 c = text->p[at++];
        if (c == '\r' && (at == text->bytes || text->p[at] == '\n')) continue;
        u32 times = c == '\t' ? TAB_STOPS - shown % TAB_STOPS : 1;
        times = MIN_OF(times, most - shown);
        for (u32 i = 0; err == OK && i < times; i++)
            err = buf_append_byte(&table->scratch, c == '\t' ? ' ' : c);
        shown += times;
        while (err == OK && at < text->bytes && (text->p[at] & 0xC0) == 0x80)
            err = buf_append_byte(&table->scratch, text->p[at++]);
    }
    bool cut = at < text->bytes && text->p[at] != '\n' && text->p[at] != '\r';
    if (cut && table->shell->word_wrap) {
        size_t end = word_end(*text, at);
        table->scratch.bytes -= MIN_OF(at - end, table->scratch.bytes);
        at = end;
        while (at < text->bytes && text->p[at] == ' ')
            at++;
    }
    if (!cut) {
        while (at < text->bytes && text->p[at] == '\r')
            at++;
        if (at < text->bytes && text->p[at] == '\n') at++;
    }
    *text = (Slice){text->p + at, text->bytes - at};
    return err;
}

static u32
column_most(const Shell *shell, u32 column)
{
    i32 width = column < shell->widths ? shell->width[column] : 0;
    if (width != 0) return (u32)(width < 0 ? -width : width);
    return shell->wrap != 0 ? shell->wrap : U32_MAX;
}

/* All lines of a cell; false: out of memory. */
static bool
cell_keep(Table *table, u32 column, Slice text, KeptCell *cell)
{
    u32 capacity = 1;
    u32 most = column_most(table->shell, column);
    Slice *line = ARENA_NEW(&table->arena, Slice);
    *cell = (KeptCell){line, 0};
    do {
        if (cell->lines == capacity) {
            Slice *bigger = ARENA_NEW_ARRAY(&table->arena, Slice, capacity * 4);
            if (bigger == NULL) return false;
            memcpy(bigger, line, capacity * sizeof(*line));
            cell->line = line = bigger;
            capacity *= 4;
        }
        Err err = line_take(table, &text, most);
        u8 *copy = arena_bytes(&table->arena, table->scratch.bytes + 1);
        if (err != OK || copy == NULL || line == NULL) return false;
        if (table->scratch.bytes > 0) memcpy(copy, table->scratch.p, table->scratch.bytes);
        line[cell->lines++] = (Slice){copy, table->scratch.bytes};
    } while (text.bytes > 0);
    return true;
}

bool
format__keep(Table *table, const LinkValue *values)
{
    char room[40];
    Buf literal = {0};
    bool good = true;
    KeptRow *row = arena_alloc(&table->arena,
                               sizeof(KeptRow) + table->columns * sizeof(row->cell[0]));
    if (row == NULL) return false;
    for (u32 i = 0; good && i < table->columns; i++) {
        Slice text = value_text(table->shell, &values[i], room);
        if (table->shell->quote) {
            buf_clear(&literal);
            good = literal_append(&values[i], &literal) == OK;
            text = buf_slice(&literal);
        }
        good = good && cell_keep(table, i, text, &row->cell[i]);
        if (good && row->cell[i].lines > 1) table->several_lines = true;
    }
    buf_free(&literal);
    if (!good) return false;
    *table->last = row;
    table->last = &row->next;
    return true;
}

/* ---- printing ---- */

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

static void
cell_print(Table *table, u32 column, Slice text, bool centered)
{
    Shell *shell = table->shell;
    u32 room = table->width[column] - (u32)utf8_count(text.p, text.bytes);
    bool right = column < shell->widths && shell->width[column] < 0;
    u32 before = centered ? room / 2 : right ? room : 0;
    spaces(shell, before);
    out_bytes(shell, text.p, text.bytes);
    spaces(shell, room - before);
}

static void
row_print(Table *table, const Frame *frame, const KeptRow *row)
{
    Shell *shell = table->shell;
    u32 lines = 1;
    for (u32 i = 0; i < table->columns; i++)
        lines = MAX_OF(lines, row->cell[i].lines);
    for (u32 number = 0; number < lines; number++) {
        out_text(shell, frame->left);
        for (u32 i = 0; i < table->columns; i++) {
            const KeptCell *cell = &row->cell[i];
            if (i > 0) out_text(shell, frame->between);
            cell_print(table, i, number < cell->lines ? cell->line[number] : SLICE_NONE, false);
        }
        out_text(shell, frame->right);
    }
}

/* Widths of the columns; `names` holds the first line of each name. */
static void
widths_find(Table *table, const KeptCell *names)
{
    for (u32 i = 0; i < table->columns; i++) {
        i32 wanted = i < table->shell->widths ? table->shell->width[i] : 0;
        u32 width = (u32)(wanted < 0 ? -wanted : wanted);
        width = MAX_OF(width, (u32)utf8_count(names[i].line[0].p, names[i].line[0].bytes));
        for (const KeptRow *row = table->first; row != NULL; row = row->next) {
            for (u32 k = 0; k < row->cell[i].lines; k++) {
                Slice line = row->cell[i].line[k];
                width = MAX_OF(width, (u32)utf8_count(line.p, line.bytes));
            }
        }
        table->width[i] = width;
    }
}

void
format__aligned(Table *table)
{
    Shell *shell = table->shell;
    const Frame *frame = &frames[shell->mode];
    if (table->rows == 0) return;
    KeptCell *names = ARENA_NEW_ARRAY(&table->arena, KeptCell, table->columns + 1);
    if (names == NULL) return;
    for (u32 i = 0; i < table->columns; i++) {
        Slice name = SLICE(table->name[i], strlen(table->name[i]));
        if (!cell_keep(table, i, name, &names[i])) return;
    }
    widths_find(table, names);
    if (shell->mode != MODE_COLUMN || format__headers(shell)) {
        rule(table, frame, 0);
        out_text(shell, frame->left);
        for (u32 i = 0; i < table->columns; i++) {
            if (i > 0) out_text(shell, frame->between);
            cell_print(table, i, names[i].line[0], shell->mode != MODE_COLUMN);
        }
        out_text(shell, frame->right);
        rule(table, frame, 1);
    }
    for (KeptRow *row = table->first; row != NULL; row = row->next) {
        if (table->several_lines && row != table->first) {
            if (shell->mode == MODE_COLUMN)
                out_text(shell, "\n");
            else if (shell->mode != MODE_MARKDOWN)
                rule(table, frame, 1);
        }
        row_print(table, frame, row);
    }
    rule(table, frame, 2);
}
