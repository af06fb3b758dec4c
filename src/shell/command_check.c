/*
 * command_check.c -- dot commands that look at a database as a whole: .sha3sum and .lint.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "shell/shell.h"

/* ---- .sha3sum ---- */

typedef struct Sum {
    Shell *shell;
    EVP_MD_CTX *hash;
    const EVP_MD *kind;
    bool failed; /* In the library: out of memory. */
    bool each;   /* With a pattern: a hash for every table. */
    Buf names;   /* Of tables, each with its NUL. */
} Sum;

static void
sum_begin(Sum *sum)
{
    if (EVP_DigestInit_ex(sum->hash, sum->kind, NULL) != 1) sum->failed = true;
}

static void
sum_add(Sum *sum, const void *bytes, size_t count)
{
    if (EVP_DigestUpdate(sum->hash, bytes, count) != 1) sum->failed = true;
}

static bool
name_row(void *arg, u32 count, const LinkValue *values)
{
    Sum *sum = arg;
    if (count == 0) return false;
    Err err = buf_append(&sum->names, values[0].text.p, values[0].text.bytes);
    if (err == OK) err = buf_append_byte(&sum->names, 0);
    if (err != OK) sum->failed = true;
    return err == OK;
}

static void
add_number(Sum *sum, u8 kind, u64 bits)
{
    u8 bytes[9] = {kind};
    store_be64(bytes + 1, bits);
    sum_add(sum, bytes, sizeof(bytes));
}

static void
add_bytes(Sum *sum, char kind, Slice bytes)
{
    char head[32];
    int count = snprintf(head, sizeof(head), "%c%zu:", kind, bytes.bytes);
    sum_add(sum, head, (size_t)count);
    sum_add(sum, bytes.p, bytes.bytes);
}

/* A row as SQLite's shell hashes it. */
static bool
hash_row(void *arg, u32 count, const LinkValue *values)
{
    Sum *sum = arg;
    sum_add(sum, "R", 1);
    for (u32 i = 0; i < count; i++) {
        const LinkValue *value = &values[i];
        u64 bits;
        switch (value->type) {
        case WEFT_INTEGER: add_number(sum, 'I', (u64)value->i); break;
        case WEFT_FLOAT:
            memcpy(&bits, &value->r, sizeof(bits));
            add_number(sum, 'F', bits);
            break;
        case WEFT_TEXT: add_bytes(sum, 'T', value->text); break;
        case WEFT_BLOB: add_bytes(sum, 'B', value->text); break;
        default: sum_add(sum, "N", 1); break;
        }
    }
    return true;
}

/* What is read of a table; the text counts to the hash. */
static bool
hash_table(Sum *sum, const char *name)
{
    static const struct {
        const char *name, *sql;
    } special[] = {
        {"sqlite_schema", "SELECT type,name,tbl_name,sql FROM sqlite_schema ORDER BY name;"},
        {"sqlite_sequence", "SELECT name,seq FROM sqlite_sequence ORDER BY name;"},
        {"sqlite_stat1", "SELECT tbl,idx,stat FROM sqlite_stat1 ORDER BY tbl,idx;"},
        {"sqlite_stat4", "SELECT * FROM sqlite_stat4 ORDER BY tbl, idx, rowid;\n"},
    };
    Buf sql = {0};
    Err err = OK;
    u32 at = 0;
    while (at < COUNT_OF(special) && strcmp(special[at].name, name) != 0)
        at++;
    if (at < COUNT_OF(special)) {
        err = buf_append_text(&sql, special[at].sql);
    } else {
        err = buf_append_text(&sql, "SELECT * FROM \"");
        for (const char *c = name; err == OK && *c != 0; c++) {
            if (*c == '"') err = buf_append_byte(&sql, '"');
            if (err == OK) err = buf_append_byte(&sql, (u8)*c);
        }
        if (err == OK) err = buf_append_text(&sql, "\" NOT INDEXED;");
    }
    if (err == OK) err = buf_append_byte(&sql, 0);
    bool good = err == OK;
    sum->failed = sum->failed || !good;
    if (good) {
        add_bytes(sum, 'S', SLICE(sql.p, sql.bytes - 1));
        good = shell_query(sum->shell, (const char *)sql.p, hash_row, sum);
    }
    buf_free(&sql);
    return good;
}

static void
print_hash(Sum *sum, const char *label)
{
    u8 hash[EVP_MAX_MD_SIZE];
    unsigned bytes = 0;
    if (EVP_DigestFinal_ex(sum->hash, hash, &bytes) != 1) sum->failed = true;
    if (sum->failed) return;
    for (u32 i = 0; i < bytes; i++)
        out_printf(sum->shell, "%02x", hash[i]);
    if (label != NULL) out_printf(sum->shell, "%s%s", sum->shell->separator, label);
    out_text(sum->shell, "\n");
}

static void
sum_run(Sum *sum, const char *pattern, bool schema)
{
    Shell *shell = sum->shell;
    sum->each = pattern != NULL;
    const char *all = schema ? "1" : "0";
    bool good = shell_queryf(
        shell, name_row, sum,
        "SELECT n FROM (SELECT lower(name) AS n FROM sqlite_schema WHERE type = 'table' "
        "AND coalesce(rootpage, 0) > 1 AND (%s OR name NOT LIKE 'sqlite!_%%' ESCAPE '!') "
        "UNION ALL SELECT 'sqlite_schema' WHERE %s) WHERE n LIKE %Q ORDER BY n COLLATE NOCASE",
        all, all, pattern == NULL ? "%" : pattern);
    sum_begin(sum);
    const char *at = (const char *)sum->names.p, *end = at + sum->names.bytes;
    for (; good && at < end; at += strlen(at) + 1) {
        if (sum->each) sum_begin(sum);
        good = hash_table(sum, at) && !sum->failed;
        if (good && sum->each) print_hash(sum, at);
    }
    if (good && !sum->each) print_hash(sum, NULL);
    if (sum->failed) shell_complain(shell, "Error: out of memory");
}

static const struct {
    const char *name;
    const EVP_MD *(*kind)(void);
} hashes[] = {{"sha3-224", EVP_sha3_224},
              {"sha3-256", EVP_sha3_256},
              {"sha3-384", EVP_sha3_384},
              {"sha3-512", EVP_sha3_512}};

void
command_sha3sum(Shell *shell, u32 count, char **argument)
{
    Sum sum = {.shell = shell, .kind = EVP_sha3_224()};
    const char *pattern = NULL;
    bool schema = false;
    for (u32 i = 0; i < count; i++) {
        const char *name = argument[i];
        if (name[0] != '-') {
            if (pattern != NULL) {
                shell_usage(shell, "sha3sum");
                return;
            }
            pattern = name;
            continue;
        }
        name += name[1] == '-' ? 2 : 1;
        u32 at = 0;
        while (at < COUNT_OF(hashes) && strcmp(name, hashes[at].name) != 0)
            at++;
        if (at < COUNT_OF(hashes)) {
            sum.kind = hashes[at].kind();
        } else if (strcmp(name, "schema") == 0) {
            schema = true;
        } else {
            shell_complain(shell, "Unknown option \"%s\" on \"sha3sum\"", argument[i]);
            return;
        }
    }
    sum.hash = EVP_MD_CTX_new();
    if (sum.hash == NULL)
        shell_complain(shell, "Error: out of memory");
    else
        sum_run(&sum, pattern, schema);
    EVP_MD_CTX_free(sum.hash);
    buf_free(&sum.names);
}

/* ---- .lint ---- */

/* The foreign key whose columns are being gathered. */
typedef struct Key {
    Shell *shell;
    bool verbose, by_parent;
    char *child, *parent;
    i64 id;
    u32 columns;
    Buf from, to, list, name, where; /* (a,b) (x,y) 'a', 'b' _a_b "a"=? AND "b"=? */
    char *last_parent;
    bool is_served; /* EXPLAIN QUERY PLAN found an index. */
} Key;

static Err
append_with_quotes(Buf *buf, Slice text, u8 quote)
{
    Err err = buf_append_byte(buf, quote);
    for (size_t i = 0; err == OK && i < text.bytes; i++) {
        if (text.p[i] == quote) err = buf_append_byte(buf, quote);
        if (err == OK) err = buf_append_byte(buf, text.p[i]);
    }
    return err == OK ? buf_append_byte(buf, quote) : err;
}

/* A search by all columns of the key? */
static bool
plan_row(void *arg, u32 count, const LinkValue *values)
{
    Key *key = arg;
    if (count < 4 || values[3].type != WEFT_TEXT) return true;
    Slice detail = values[3].text;
    u32 terms = 0;
    for (size_t i = 0; i + 1 < detail.bytes; i++)
        terms += detail.p[i] == '=' && detail.p[i + 1] == '?';
    bool is_search = detail.bytes > 7 && memcmp(detail.p, "SEARCH ", 7) == 0;
    key->is_served = is_search && terms == key->columns;
    return true;
}

static const char *
text_of(Buf *buf)
{
    return buf_append_byte(buf, 0) == OK ? (const char *)buf->p : "";
}

static void
key_print(Key *key)
{
    Shell *shell = key->shell;
    const char *indent = key->by_parent ? "    " : "";
    const char *from = text_of(&key->from), *to = text_of(&key->to);
    if (key->by_parent &&
        (key->last_parent == NULL || strcmp(key->last_parent, key->parent) != 0)) {
        out_printf(shell, "-- Parent table %s\n", key->parent);
        mem_free(key->last_parent);
        key->last_parent = mem_strdup(key->parent);
    }
    if (key->is_served && !key->verbose) return;
    if (key->is_served) {
        out_printf(shell, "%s/* no extra indexes required for %s(%s) -> %s(%s) */\n", indent,
                   key->child, from, key->parent, to);
        return;
    }
    Buf index = {0}, table = {0};
    Slice child = SLICE(key->child, strlen(key->child));
    Err err = buf_append(&index, child.p, child.bytes);
    if (err == OK) err = buf_append(&index, key->name.p, key->name.bytes);
    Buf quoted = {0};
    if (err == OK) err = append_with_quotes(&quoted, buf_slice(&index), '\'');
    if (err == OK) err = append_with_quotes(&table, child, '\'');
    if (err == OK) {
        out_printf(shell, "%sCREATE INDEX %s ON %s(%s); --> %s(%s)\n", indent, text_of(&quoted),
                   text_of(&table), text_of(&key->list), key->parent, to);
    }
    buf_free(&index);
    buf_free(&quoted);
    buf_free(&table);
}

/* The key is complete: is there an index for it? */
static bool
key_end(Key *key)
{
    bool good = true;
    if (key->columns > 0) {
        key->is_served = false;
        good = shell_queryf(key->shell, plan_row, key,
                            "EXPLAIN QUERY PLAN SELECT 1 FROM %w WHERE %s", key->child,
                            text_of(&key->where));
        if (good) key_print(key);
    }
    mem_free(key->child);
    mem_free(key->parent);
    key->child = key->parent = NULL;
    key->columns = 0;
    Buf *bufs[] = {&key->from, &key->to, &key->list, &key->name, &key->where};
    for (u32 i = 0; i < COUNT_OF(bufs); i++)
        buf_clear(bufs[i]);
    return good;
}

static Err
key_column(Key *key, Slice from, Slice to)
{
    bool first = key->columns++ == 0;
    Err err = first ? OK : buf_append_text(&key->from, ",");
    if (err == OK) err = buf_append(&key->from, from.p, from.bytes);
    if (err == OK && !first) err = buf_append_text(&key->to, ",");
    if (err == OK) err = buf_append(&key->to, to.p, to.bytes);
    if (err == OK && !first) err = buf_append_text(&key->list, ", ");
    if (err == OK) err = append_with_quotes(&key->list, from, '\'');
    if (err == OK) err = buf_append_byte(&key->name, '_');
    if (err == OK) err = buf_append(&key->name, from.p, from.bytes);
    if (err == OK && !first) err = buf_append_text(&key->where, " AND ");
    if (err == OK) err = append_with_quotes(&key->where, from, '"');
    return err == OK ? buf_append_text(&key->where, "=?") : err;
}

/* child, id, parent, from, to: sorted by key, in the order of its columns. */
static bool
key_row(void *arg, u32 count, const LinkValue *values)
{
    Buf *rows = arg;
    for (u32 i = 0; i < count; i++) {
        Err err = values[i].type == WEFT_TEXT
                      ? buf_append(rows, values[i].text.p, values[i].text.bytes)
                      : OK;
        if (err == OK) err = buf_append_byte(rows, 0);
        if (err != OK) return false;
    }
    return true;
}

static bool
keys_print(Key *key, const Buf *rows)
{
    const char *at = (const char *)rows->p, *end = at + rows->bytes;
    char id[24] = "";
    bool good = true;
    while (good && at < end) {
        const char *field[5];
        for (u32 i = 0; i < COUNT_OF(field); i++) {
            field[i] = at;
            at += strlen(at) + 1;
        }
        if (key->child == NULL || strcmp(key->child, field[0]) != 0 || strcmp(id, field[1]) != 0) {
            good = key_end(key);
            snprintf(id, sizeof(id), "%s", field[1]);
            key->child = mem_strdup(field[0]);
            key->parent = mem_strdup(field[2]);
            good = good && key->child != NULL && key->parent != NULL;
        }
        good = good && key_column(key, SLICE(field[3], strlen(field[3])),
                                  SLICE(field[4], strlen(field[4]))) == OK;
    }
    return good && key_end(key);
}

void
command_lint(Shell *shell, u32 count, char **argument)
{
    Key key = {.shell = shell};
    Buf rows = {0};
    u64 errors = shell->errors;
    size_t bytes = count > 0 ? strlen(argument[0]) : 0;
    bool known = bytes > 0 && strncmp(argument[0], "fkey-indexes", bytes) == 0;
    for (u32 i = 1; known && i < count; i++) {
        const char *name = argument[i];
        size_t length = strlen(name);
        if (length > 1 && strncmp(name, "-verbose", length) == 0) {
            key.verbose = true;
        } else if (length > 1 && strncmp(name, "-groupbyparent", length) == 0) {
            key.by_parent = true;
        } else {
            shell_complain(shell, "Usage: lint %s ?-verbose? ?-groupbyparent?", argument[0]);
            return;
        }
    }
    if (!known) {
        shell_complain(shell, "Usage lint sub-command ?switches...?");
        shell_complain(shell, "Where sub-commands are:");
        shell_complain(shell, "    fkey-indexes");
        return;
    }
    bool good = shell_queryf(
        shell, key_row, &rows,
        "SELECT s.name, CAST(f.id AS TEXT), f.\"table\", f.\"from\", "
        "coalesce(f.\"to\", (SELECT p.name FROM pragma_table_info(f.\"table\") AS p "
        "WHERE p.pk = f.seq + 1), '') "
        "FROM sqlite_schema AS s JOIN pragma_foreign_key_list(s.name) AS f "
        "WHERE s.type = 'table' ORDER BY %s, s.name, f.id, f.seq",
        key.by_parent ? "f.\"table\"" : "1");
    if (good && !keys_print(&key, &rows) && shell->errors == errors)
        shell_complain(shell, "Error: out of memory");
    Buf *bufs[] = {&key.from, &key.to, &key.list, &key.name, &key.where, &rows};
    for (u32 i = 0; i < COUNT_OF(bufs); i++)
        buf_free(bufs[i]);
    mem_free(key.child);
    mem_free(key.parent);
    mem_free(key.last_parent);
}
