/*
 * command_import.c -- load a file of separated values into a table.
 *
 * The file is read in pieces; a row is kept only until it has been handed on.  Cells in double
 * quotes may hold separators and line ends, a doubled quote is one.  All rows are one transaction.
 */
#include <stdio.h>
#include <string.h>

#include "shell/shell.h"

#define READ_BYTES     ((size_t)64 << 10)
#define CELLS_MAX      2000
#define PROGRESS_ROWS  100000
#define CELL_BYTES_MAX ((size_t)1 << 30)

typedef struct Reader {
    RtFile *file;
    u8 bytes[READ_BYTES];
    size_t have, at;
    bool ended, quotes; /* quotes: cells may be in double quotes. */
    char separator, row_end;
    u64 line;
    Buf text; /* Cells of the row, one after the other. */
    size_t cell_start[CELLS_MAX + 1];
    u32 cells;
    char *problem;
} Reader;

/* The next byte, -1 at the end, -2 when reading failed. */
static i32
byte_next(Reader *reader)
{
    if (reader->at == reader->have && !reader->ended) {
        reader->at = reader->have = 0;
        if (rt_file_read_next(reader->file, reader->bytes, READ_BYTES, &reader->have, NULL) != OK)
            return -2;
        reader->ended = reader->have == 0;
    }
    return reader->ended ? -1 : reader->bytes[reader->at++];
}

static i32
byte_peek(Reader *reader)
{
    i32 c = byte_next(reader);
    if (c >= 0) reader->at--;
    return c;
}

/* One cell up to its separator or line end; *last_out: it ends the row. */
static bool
cell_read(Reader *reader, bool *last_out)
{
    i32 c = byte_next(reader);
    bool quoted = reader->quotes && c == '"';
    if (quoted) c = byte_next(reader);
    for (;; c = byte_next(reader)) {
        if (c == -2 || reader->text.bytes > CELL_BYTES_MAX) return false;
        if (c == -1) break;
        if (c == '\n') reader->line++;
        if (quoted && c == '"') {
            if (byte_peek(reader) != '"') {
                quoted = false;
                continue;
            }
            c = byte_next(reader);
        } else if (!quoted) {
            if (c == reader->separator || c == reader->row_end) break;
            if (c == '\r' && reader->quotes && byte_peek(reader) == '\n') continue;
        }
        if (buf_append_byte(&reader->text, (u8)c) != OK) return false;
    }
    *last_out = c != reader->separator;
    return true;
}

/* 1: a row, 0: the end, -1: an error. */
static int
row_read(Reader *reader)
{
    bool last = false;
    buf_clear(&reader->text);
    reader->cells = 0;
    if (byte_peek(reader) == -1) return 0;
    reader->line++;
    u64 first_line = reader->line;
    while (!last) {
        if (reader->cells == CELLS_MAX) return -1;
        reader->cell_start[reader->cells++] = reader->text.bytes;
        if (!cell_read(reader, &last)) return -1;
    }
    reader->cell_start[reader->cells] = reader->text.bytes;
    if (reader->line > first_line) reader->line--; /* Its own line end counts for the next row. */
    return 1;
}

static Slice
cell_text(const Reader *reader, u32 cell)
{
    size_t from = reader->cell_start[cell];
    return (Slice){reader->text.p + from, reader->cell_start[cell + 1] - from};
}

typedef struct Import {
    const char *file, *table, *schema;
    char separator, row_end;
    bool plain; /* --ascii: no quotes. */
    bool verbose;
    u64 skip;
} Import;

/* ---- the table ---- */

static bool
count_row(void *arg, u32 count, const LinkValue *values)
{
    (void)count;
    (void)values;
    ++*(u32 *)arg;
    return true;
}

static Err
append_name(Buf *sql, Slice name)
{
    Err err = buf_append_byte(sql, '"');
    for (size_t i = 0; i < name.bytes && err == OK; i++) {
        if (name.p[i] == '"') err = buf_append_byte(sql, '"');
        if (err == OK) err = buf_append_byte(sql, name.p[i]);
    }
    return err == OK ? buf_append_byte(sql, '"') : err;
}

/* "schema"."table", or the table alone. */
static Err
append_table(Buf *sql, const Import *import)
{
    Err err = OK;
    if (import->schema != NULL) {
        err = append_name(sql, SLICE(import->schema, strlen(import->schema)));
        if (err == OK) err = buf_append_byte(sql, '.');
    }
    return err == OK ? append_name(sql, SLICE(import->table, strlen(import->table))) : err;
}

/* Columns of the table; 0: there is none. */
static u32
table_columns(Shell *shell, const Import *import)
{
    u32 columns = 0;
    if (import->schema != NULL)
        (void)shell_queryf(shell, count_row, &columns, "PRAGMA %w.table_info(%w)", import->schema,
                           import->table);
    else
        (void)shell_queryf(shell, count_row, &columns, "PRAGMA table_info(%w)", import->table);
    return columns;
}

/* A new table named by the first row of the file. */
static bool
table_create(Shell *shell, const Import *import, const Reader *reader)
{
    Buf sql = {0};
    Err err = buf_append_text(&sql, "CREATE TABLE ");
    if (err == OK) err = append_table(&sql, import);
    for (u32 i = 0; i < reader->cells && err == OK; i++) {
        Slice name = cell_text(reader, i);
        err = buf_append_text(&sql, i == 0 ? "(\n" : ", ");
        if (err == OK) err = append_name(&sql, name.bytes > 0 ? name : SLICE_LITERAL("?"));
        if (err == OK) err = buf_append_text(&sql, " TEXT");
    }
    if (err == OK) err = buf_append_text(&sql, ")");
    if (err == OK) err = buf_append_byte(&sql, 0);
    if (err == OK && import->verbose) out_printf(shell, "%s\n", (const char *)sql.p);
    bool good = err == OK && shell_query(shell, (const char *)sql.p, NULL, NULL);
    buf_free(&sql);
    return good;
}

static LinkLoad *
load_begin(Shell *shell, const Import *import, u32 columns)
{
    Buf sql = {0};
    LinkError error = {.offset = -1};
    LinkLoad *load = NULL;
    Err err = buf_append_text(&sql, "INSERT INTO ");
    if (err == OK) err = append_table(&sql, import);
    for (u32 i = 0; i < columns && err == OK; i++)
        err = buf_append_text(&sql, i == 0 ? " VALUES(?" : ",?");
    if (err == OK) err = buf_append_text(&sql, ")");
    if (err == OK) err = buf_append_byte(&sql, 0);
    if (err == OK) load = link_load_begin(shell->link, (const char *)sql.p, columns, &error);
    if (load == NULL)
        shell_complain(shell, "Error: %s", error.text != NULL ? error.text : "out of memory");
    link_error_clear(&error);
    buf_free(&sql);
    return load;
}

static void
number_take(const char *text, u64 *number_out)
{
    for (; *text >= '0' && *text <= '9'; text++)
        *number_out = *number_out * 10 + (u64)(*text - '0');
}

/* An option; *at moves over its value.  False: none. */
static bool
option_take(Import *import, u32 count, char **argument, u32 *at)
{
    const char *name = argument[*at];
    bool has_value = *at + 1 < count;
    while (*name == '-')
        name++;
    if (strcmp(name, "csv") == 0) {
        import->separator = ',';
    } else if (strcmp(name, "tabs") == 0) {
        import->separator = '\t';
    } else if (strcmp(name, "ascii") == 0) {
        import->separator = 0x1f;
        import->row_end = 0x1e;
        import->plain = true;
    } else if (strcmp(name, "v") == 0) {
        import->verbose = true;
    } else if (strcmp(name, "skip") == 0 && has_value) {
        number_take(argument[++*at], &import->skip);
    } else if (strcmp(name, "schema") == 0 && has_value) {
        import->schema = argument[++*at];
    } else {
        return false;
    }
    return true;
}

static bool
arguments_read(Shell *shell, u32 count, char **argument, Import *import)
{
    /* One that is longer or empty is told by 0. */
    *import = (Import){.separator = shell->separator[0], .row_end = '\n'};
    if (shell->separator[0] != 0 && shell->separator[1] != 0) import->separator = 0;
    if (shell->mode == MODE_ASCII) {
        import->row_end = 0x1e;
        import->plain = true;
    } else if (mode_is_aligned(shell->mode) || shell->mode == MODE_JSON ||
               shell->mode == MODE_LINE || shell->mode == MODE_HTML) {
        import->separator = '|';
    }
    for (u32 i = 0; i < count; i++) {
        if (argument[i][0] == '-') {
            if (!option_take(import, count, argument, &i)) return false;
        } else if (import->table != NULL) {
            return false;
        } else if (import->file == NULL) {
            import->file = argument[i];
        } else {
            import->table = argument[i];
        }
    }
    return import->table != NULL;
}

static bool
rows_load(Shell *shell, Reader *reader, const char *name, LinkLoad *load, u32 columns,
          u64 *rows_out)
{
    LinkError error = {.offset = -1};
    LinkValue *values = MEM_NEW_ARRAY(LinkValue, columns + 1);
    bool good = values != NULL;
    int more = 1;
    while (good && (more = row_read(reader)) == 1) {
        if (reader->cells != columns) {
            shell_complain(shell, "%s:%llu: expected %u columns but found %u - %s", name,
                           (unsigned long long)reader->line, columns, reader->cells,
                           reader->cells < columns ? "filling the rest with NULL"
                                                   : "extras ignored");
            shell->errors--; /* A warning. */
        }
        for (u32 i = 0; i < columns; i++)
            values[i] = i < reader->cells
                            ? (LinkValue){.type = WEFT_TEXT, .text = cell_text(reader, i)}
                            : (LinkValue){.type = WEFT_NULL};
        good = link_load_row(load, values, &error);
        if (!good)
            shell_complain(shell, "%s:%llu: INSERT failed: %s", name,
                           (unsigned long long)reader->line,
                           error.text != NULL ? error.text : "out of memory");
        if (++*rows_out % PROGRESS_ROWS == 0 && shell->interactive) {
            Err err = rt_std_print(RT_STDERR, "%llu rows\r", (unsigned long long)*rows_out);
            (void)err;
        }
        if (rt_load_relaxed(&shell->interrupted) != 0) {
            shell_complain(shell, "Error: interrupted");
            good = false;
        }
    }
    if (good && more < 0) {
        shell_complain(shell, "Error: line %llu cannot be read", (unsigned long long)reader->line);
        good = false;
    }
    if (!link_load_end(load, good, &error) && good) {
        shell_complain(shell, "Error: %s", error.text != NULL ? error.text : "out of memory");
        good = false;
    }
    link_error_clear(&error);
    mem_free(values);
    return good;
}

static void
import_run(Shell *shell, Reader *reader, const Import *import)
{
    u64 rows = 0;
    int more = 1;
    for (u64 i = 0; i < import->skip && more == 1; i++)
        more = row_read(reader);
    u32 columns = table_columns(shell, import);
    if (columns == 0 && more == 1 && row_read(reader) == 1 && table_create(shell, import, reader))
        columns = reader->cells;
    if (columns == 0) return;
    const char *name = import->file[0] == '|' ? "<pipe>" : import->file;
    rt_store(&shell->interrupted, 0u);
    LinkLoad *load = load_begin(shell, import, columns);
    if (load != NULL && rows_load(shell, reader, name, load, columns, &rows) && shell->interactive)
        out_printf(shell, "%llu rows\n", (unsigned long long)rows);
}

void
command_import(Shell *shell, u32 count, char **argument)
{
    Import import;
    if (!arguments_read(shell, count, argument, &import)) {
        shell_usage(shell, "import");
        return;
    }
    if (import.separator == 0) {
        shell_complain(shell, "Error: .import needs a column separator of one character");
        return;
    }
    Reader *reader = MEM_NEW(Reader);
    if (reader == NULL || shell->link == NULL) {
        shell_complain(shell, "Error: %s",
                       reader == NULL ? "out of memory" : "no database is open");
        mem_free(reader);
        return;
    }
    /* As in SQLite's shell: from then on csv mode ends its lines with LF alone. */
    if (strcmp(shell->row_separator, "\r\n") == 0)
        snprintf(shell->row_separator, sizeof(shell->row_separator), "\n");
    reader->file = shell_file_open(shell, import.file);
    if (reader->file != NULL) {
        reader->separator = import.separator;
        reader->row_end = import.row_end;
        reader->quotes = !import.plain;
        import_run(shell, reader, &import);
        rt_file_close(reader->file);
        buf_free(&reader->text);
    }
    mem_free(reader);
}
