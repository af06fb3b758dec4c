/* script.c -- see script.h. */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct Script {
    const char *engine;
    char *bytes;
    char **line; /* Without line ends and comments. */
    u32 *line_number;
    u32 line_count, next;
    char *sql;
};

static bool
is_blank(const char *line)
{
    return line[strspn(line, " \t\v\f\r")] == 0;
}

static char *
file_read(const char *path, size_t *bytes_out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return NULL;
    }
    size_t capacity = (size_t)1 << 16, bytes = 0;
    char *text = malloc(capacity + 1);
    while (text != NULL) {
        size_t got = fread(text + bytes, 1, capacity - bytes, file);
        bytes += got;
        if (got == 0) break;
        if (bytes == capacity) {
            capacity *= 2;
            text = realloc(text, capacity + 1);
        }
    }
    fclose(file);
    if (text == NULL) exit(2);
    text[bytes] = 0;
    *bytes_out = bytes;
    return text;
}

Script *
script_open(const char *path, const char *engine_name)
{
    size_t bytes = 0;
    char *text = file_read(path, &bytes);
    if (text == NULL) return NULL;
    size_t lines = 1;
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    Script *script = calloc(1, sizeof(*script));
    char **line = calloc(lines, sizeof(*line));
    u32 *number = calloc(lines, sizeof(*number));
    char *sql = malloc(bytes + 1);
    if (script == NULL || line == NULL || number == NULL || sql == NULL) exit(2);
    *script = (Script){engine_name, text, line, number, 0, 0, sql};

    u32 at_line = 0;
    for (char *at = text; at < text + bytes;) {
        char *end = memchr(at, '\n', (size_t)(text + bytes - at));
        char *next = end != NULL ? end + 1 : text + bytes;
        if (end == NULL) end = text + bytes;
        if (end > at && end[-1] == '\r') end--;
        *end = 0;
        at_line++;
        if (*at != '#') {
            line[script->line_count] = at;
            number[script->line_count++] = at_line;
        }
        at = next;
    }
    return script;
}

/* Split a copy of a head line into words; returns how many. */
static u32
words_of(const char *line, char *copy, size_t copy_bytes, char *word[SCRIPT_WORDS_MAX])
{
    u32 count = 0;
    snprintf(copy, copy_bytes, "%s", line);
    char *rest = NULL;
    for (char *at = strtok_r(copy, " \t\v\f", &rest); at != NULL && count < SCRIPT_WORDS_MAX;
         at = strtok_r(NULL, " \t\v\f", &rest)) {
        word[count++] = at;
    }
    for (u32 i = count; i < SCRIPT_WORDS_MAX; i++)
        word[i] = "";
    return count;
}

static RecordKind
kind_of(const char *word)
{
    if (strcmp(word, "statement") == 0) return RECORD_STATEMENT;
    if (strcmp(word, "query") == 0) return RECORD_QUERY;
    if (strcmp(word, "halt") == 0) return RECORD_HALT;
    if (strcmp(word, "hash-threshold") == 0) return RECORD_HASH_THRESHOLD;
    return RECORD_UNKNOWN;
}

/* Join lines [from, to) into the script's SQL buffer. */
static void
sql_join(Script *script, u32 from, u32 to)
{
    char *out = script->sql;
    for (u32 i = from; i < to; i++) {
        size_t bytes = strlen(script->line[i]);
        if (i > from) *out++ = '\n';
        memcpy(out, script->line[i], bytes);
        out += bytes;
    }
    *out = 0;
}

bool
script_next(Script *script, Record *record_out)
{
    char copy[1024];
    char *word[SCRIPT_WORDS_MAX];
    u32 at = script->next;
    while (at < script->line_count && is_blank(script->line[at]))
        at++;
    if (at == script->line_count) return false;
    u32 end = at;
    while (end < script->line_count && !is_blank(script->line[end]))
        end++;
    script->next = end;

    Record record = {.sql = script->sql};
    for (; at < end; at++) {
        words_of(script->line[at], copy, sizeof(copy), word);
        bool same = strcasecmp(word[1], script->engine) == 0;
        if (strcmp(word[0], "skipif") == 0)
            record.skipped |= same;
        else if (strcmp(word[0], "onlyif") == 0)
            record.skipped |= !same;
        else
            break;
    }
    record.line = script->line_number[at < end ? at : end - 1];
    record.kind = at < end ? kind_of(word[0]) : RECORD_UNKNOWN;
    u32 sql_end = end;
    record.error_text = "";
    if (record.kind == RECORD_STATEMENT) {
        record.expect_error = strcmp(word[1], "error") == 0;
        const char *text = strstr(script->line[at], "error ");
        if (record.expect_error && text != NULL) record.error_text = text + strlen("error ");
    }
    if (record.kind == RECORD_QUERY) {
        snprintf(record.types, sizeof(record.types), "%s", word[1]);
        snprintf(record.sort, sizeof(record.sort), "%s", *word[2] != 0 ? word[2] : "nosort");
        snprintf(record.label, sizeof(record.label), "%.20s", word[3]);
        for (sql_end = at + 1; sql_end < end && strcmp(script->line[sql_end], "----") != 0;)
            sql_end++;
        if (sql_end < end) {
            record.expected = script->line + sql_end + 1;
            record.expected_count = end - sql_end - 1;
        }
    }
    if (at < end) sql_join(script, at + 1, sql_end);
    *record_out = record;
    return true;
}

void
script_close(Script *script)
{
    if (script == NULL) return;
    free(script->bytes);
    free(script->line);
    free(script->line_number);
    free(script->sql);
    free(script);
}
