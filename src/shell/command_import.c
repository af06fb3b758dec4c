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
    bool ended;
    char separator;
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
    bool quoted = c == '"';
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
            if (c == reader->separator || c == '\n') break;
            if (c == '\r' && byte_peek(reader) == '\n') continue;
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

/* Columns of the table; 0: there is none. */
static u32
table_columns(Shell *shell, const char *table)
{
    Buf sql = {0};
    u32 columns = 0;
    Err err = buf_append_text(&sql, "PRAGMA table_info(");
    if (err == OK) err = append_name(&sql, SLICE(table, strlen(table)));
    if (err == OK) err = buf_append_text(&sql, ")");
    if (err == OK) err = buf_append_byte(&sql, 0);
    if (err == OK) (void)shell_query(shell, (const char *)sql.p, count_row, &columns);
    buf_free(&sql);
    return columns;
}

/* A new table named by the first row of the file. */
static bool
table_create(Shell *shell, const char *table, const Reader *reader)
{
    Buf sql = {0};
    Err err = buf_append_text(&sql, "CREATE TABLE ");
    if (err == OK) err = append_name(&sql, SLICE(table, strlen(table)));
    for (u32 i = 0; i < reader->cells && err == OK; i++) {
        err = buf_append_text(&sql, i == 0 ? "(\n" : ",\n");
        if (err == OK) err = append_name(&sql, cell_text(reader, i));
        if (err == OK) err = buf_append_text(&sql, " TEXT");
    }
    if (err == OK) err = buf_append_text(&sql, ")");
    if (err == OK) err = buf_append_byte(&sql, 0);
    bool good = err == OK && shell_query(shell, (const char *)sql.p, NULL, NULL);
    buf_free(&sql);
    return good;
}

static LinkLoad *
load_begin(Shell *shell, const char *table, u32 columns)
{
    Buf sql = {0};
    LinkError error = {.offset = -1};
    LinkLoad *load = NULL;
    Err err = buf_append_text(&sql, "INSERT INTO ");
    if (err == OK) err = append_name(&sql, SLICE(table, strlen(table)));
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

/* ---- the command ---- */

typedef struct Import {
    const char *file, *table;
    char separator;
    u64 skip;
} Import;

static bool
arguments_read(Shell *shell, u32 count, char **argument, Import *import)
{
    *import = (Import){.separator = shell->separator[0]};
    if (shell->mode != MODE_LIST && shell->mode != MODE_CSV && shell->mode != MODE_TABS &&
        shell->mode != MODE_QUOTE && shell->mode != MODE_INSERT)
        import->separator = '|';
    for (u32 i = 0; i < count; i++) {
        if (strcmp(argument[i], "--csv") == 0 || strcmp(argument[i], "-csv") == 0) {
            import->separator = ',';
        } else if (strcmp(argument[i], "--tabs") == 0) {
            import->separator = '\t';
        } else if (strcmp(argument[i], "--skip") == 0 && i + 1 < count) {
            for (const char *digit = argument[++i]; *digit >= '0' && *digit <= '9'; digit++)
                import->skip = import->skip * 10 + (u64)(*digit - '0');
        } else if (argument[i][0] == '-' || import->table != NULL) {
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
rows_load(Shell *shell, Reader *reader, LinkLoad *load, u32 columns, u64 *rows_out)
{
    LinkError error = {.offset = -1};
    LinkValue *values = MEM_NEW_ARRAY(LinkValue, columns + 1);
    bool good = values != NULL;
    int more = 1;
    while (good && (more = row_read(reader)) == 1) {
        if (reader->cells != columns) {
            shell_complain(shell, "line %llu: expected %u columns but found %u - %s",
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
            shell_complain(shell, "Error: line %llu: %s", (unsigned long long)reader->line,
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
    u32 columns = table_columns(shell, import->table);
    if (columns == 0 && more == 1 && row_read(reader) == 1 &&
        table_create(shell, import->table, reader))
        columns = reader->cells;
    if (columns == 0) return;
    rt_store(&shell->interrupted, 0u);
    LinkLoad *load = load_begin(shell, import->table, columns);
    if (load != NULL && rows_load(shell, reader, load, columns, &rows) && shell->interactive)
        out_printf(shell, "%llu rows\n", (unsigned long long)rows);
}

void
command_import(Shell *shell, u32 count, char **argument)
{
    Import import;
    ErrMsg msg = {0};
    if (!arguments_read(shell, count, argument, &import)) {
        shell_complain(shell, "Usage: .import ?--csv|--tabs? ?--skip N? FILE TABLE");
        return;
    }
    Reader *reader = MEM_NEW(Reader);
    if (reader == NULL || shell->link == NULL) {
        shell_complain(shell, "Error: %s",
                       reader == NULL ? "out of memory" : "no database is open");
    } else if (rt_file_open(NULL, import.file, RT_FILE_READ, &reader->file, &msg) != OK) {
        shell_complain(shell, "Error: cannot open \"%s\"", import.file);
        err_clear(&msg);
    } else {
        reader->separator = import.separator;
        import_run(shell, reader, &import);
        rt_file_close(reader->file);
        buf_free(&reader->text);
    }
    mem_free(reader);
}
