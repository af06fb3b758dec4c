/*
 * table_build.c -- from CREATE TABLE's syntax tree to a TableDef, with its automatic indexes.
 *
 * The same walk serves CREATE (which checks names and meaning) and loading (which trusts the stored
 * text).  Automatic indexes are numbered in the order of the constraints, as SQLite numbers them,
 * because their names are part of the file.
 */
#include "sql/catalog/catalog_unit.h"
#include "sql/parse/parse.h"
#include "value/collate.h"
#include "value/number.h"

typedef struct TableBuild {
    const UnitContext *context;
    Arena *arena;
    Slice sql;
    const AstCreateTable *ast;
    TableDef *table;
    u32 auto_count; /* Automatic indexes made so far. */
    bool has_primary_key;
    /* The INTEGER PRIMARY KEY of a WITHOUT ROWID table: its index is made last, as in SQLite. */
    IndexColumn *late_key;
    Conflict late_conflict;
    bool autoincrement;
    u32 capacity_checks, capacity_keys;
} TableBuild;

static Err
fail(const TableBuild *build, const char *format, const char *a, const char *b)
{
    ErrMsg *msg = build->context->msg;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    Err err = err_set(msg, ERR_SQL, format, a, b);
#pragma GCC diagnostic pop
    return err;
}

char *
catalog__span_copy(Arena *arena, Slice sql, Span span)
{
    return arena_strndup(arena, sql.p + span.offset, span.bytes);
}

static char *
name_copy(Arena *arena, const AstName *name)
{
    return arena_strndup(arena, name->text.p, name->text.bytes);
}

Err
catalog__collation(Arena *arena, Slice name, const Collation **collation_out, const char **host_out)
{
    *host_out = NULL;
    *collation_out = collation_find_builtin(name);
    if (*collation_out != NULL) return OK;
    *collation_out = &collation_binary;
    *host_out = arena_strndup(arena, name.p, name.bytes);
    return *host_out == NULL ? ERR_NOMEM : OK;
}

Err
catalog__check_unique(const UnitContext *context, const IndexColumn *column, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        if (column[i].host_collation == NULL) continue;
        return err_set(context->msg, ERR_UNSUPPORTED,
                       "UNIQUE and PRIMARY KEY under the collation %s of the program are not "
                       "supported",
                       column[i].host_collation);
    }
    return OK;
}

i32
catalog__column_find(const TableDef *table, Slice name)
{
    for (u32 i = 0; i < table->column_count; i++) {
        const char *at = table->column[i].name;
        if (slice_equal_nocase(name, SLICE(at, strlen(at)))) return (i32)i;
    }
    return -1;
}

bool
catalog__is_rowid_name(Slice name)
{
    return slice_equal_nocase(name, SLICE_LITERAL("rowid")) ||
           slice_equal_nocase(name, SLICE_LITERAL("oid")) ||
           slice_equal_nocase(name, SLICE_LITERAL("_rowid_"));
}

bool
catalog__names_column(const TableDef *table, Slice name)
{
    if (catalog__column_find(table, name) >= 0) return true;
    return !table->without_rowid && catalog__is_rowid_name(name);
}

Conflict
catalog_conflict(unsigned ast_conflict)
{
    static const Conflict map[] = {
        [AST_CONFLICT_DEFAULT] = CONFLICT_DEFAULT, [AST_CONFLICT_ROLLBACK] = CONFLICT_ROLLBACK,
        [AST_CONFLICT_ABORT] = CONFLICT_ABORT,     [AST_CONFLICT_FAIL] = CONFLICT_FAIL,
        [AST_CONFLICT_IGNORE] = CONFLICT_IGNORE,   [AST_CONFLICT_REPLACE] = CONFLICT_REPLACE};
    return map[ast_conflict];
}

/* ---- automatic indexes ---- */

static bool
same_columns(const IndexDef *a, const IndexDef *b)
{
    if (a->key_columns != b->key_columns) return false;
    for (u32 i = 0; i < a->key_columns; i++) {
        if (a->column[i].column != b->column[i].column) return false;
        if (a->column[i].collation != b->column[i].collation) return false;
    }
    return true;
}

Err
catalog__table_add_index(Arena *arena, TableDef *table, IndexDef *index)
{
    IndexDef **list = ARENA_NEW_ARRAY(arena, IndexDef *, table->index_count + 1u);
    if (list == NULL) return ERR_NOMEM;
    list[0] = index;
    for (u32 i = 0; i < table->index_count; i++)
        list[i + 1] = table->index[i];
    table->index = list;
    table->index_count++;
    return OK;
}

/* One column of PRIMARY KEY (...) or UNIQUE (...). */
static Err
key_column(const TableBuild *build, const AstOrderTerm *term, IndexColumn *column)
{
    const AstExpr *expr = term->expr;
    Slice collation = SLICE_NONE;
    if (expr->kind == AST_EXPR_COLLATE) {
        collation = expr->u.collate.name->text;
        expr = expr->u.collate.operand;
    }
    Slice name = SLICE_NONE;
    if (expr->kind == AST_EXPR_COLUMN && expr->u.column.qualifier == NULL) {
        name = expr->u.column.name.text;
    } else if (expr->kind == AST_EXPR_STRING) {
        name = expr->u.literal;
    } else {
        return fail(build, "expressions prohibited in PRIMARY KEY and UNIQUE constraints", "", "");
    }
    i32 at = catalog__column_find(build->table, name);
    if (at < 0) {
        return err_set_at(build->context->msg, ERR_SQL, (i32)expr->span.offset,
                          "no such column: %.*s", (int)name.bytes, (const char *)name.p);
    }
    *column = (IndexColumn){
        .column = (u16)at,
        .desc = term->sort == AST_SORT_DESC,
        .collation = build->table->column[at].collation,
        .host_collation = build->table->column[at].host_collation,
    };
    if (collation.p == NULL) return OK;
    return catalog__collation(build->arena, collation, &column->collation, &column->host_collation);
}

/* Two constraints over the same columns are one index: their clauses must not contradict. */
static Err
merge_conflict(TableBuild *build, IndexDef *index, Conflict conflict)
{
    if (index->conflict == CONFLICT_DEFAULT) index->conflict = (u8)conflict;
    if (conflict == CONFLICT_DEFAULT || index->conflict == conflict) return OK;
    return err_set(build->context->msg, ERR_SQL, "conflicting ON CONFLICT clauses specified");
}

static Err
make_index(TableBuild *build, IndexColumn *column, u32 count, IndexOrigin origin, Conflict conflict,
           IndexDef **index_out)
{
    TableDef *table = build->table;
    *index_out = NULL;
    IndexDef *index = ARENA_NEW(build->arena, IndexDef);
    if (index == NULL) return ERR_NOMEM;
    *index = (IndexDef){
        .table = table,
        .unique = true,
        .origin = (u8)origin,
        .conflict = (u8)conflict,
        .key_columns = (u16)count,
        .column = column,
    };
    Err err = catalog__check_unique(build->context, column, count);
    if (err != OK) return err;
    /* A constraint that repeats another needs no index of its own. */
    for (u32 i = 0; i < table->index_count; i++) {
        IndexDef *other = table->index[i];
        if (!same_columns(other, index)) continue;
        if (origin == INDEX_PRIMARY_KEY) other->origin = INDEX_PRIMARY_KEY;
        return merge_conflict(build, other, conflict);
    }
    if (table->primary_key != NULL && same_columns(table->primary_key, index)) {
        return merge_conflict(build, table->primary_key, conflict);
    }
    index->name = arena_printf(build->arena, "sqlite_autoindex_%s_%u", table->name,
                               build->auto_count + 1);
    if (index->name == NULL) return ERR_NOMEM;
    build->auto_count++;
    *index_out = index;
    return OK;
}

static Err
add_unique(TableBuild *build, IndexColumn *column, u32 count, Conflict conflict)
{
    IndexDef *index;
    Err err = make_index(build, column, count, INDEX_UNIQUE, conflict, &index);
    if (err != OK || index == NULL) return err;
    return catalog__table_add_index(build->arena, build->table, index);
}

/* A UNIQUE constraint over the columns of the PRIMARY KEY, written before it, becomes the key. */
static IndexDef *
promote_unique(TableDef *table, IndexColumn *column, u32 count)
{
    IndexDef key = {.table = table, .key_columns = (u16)count, .column = column};
    for (u16 i = 0; i < table->index_count; i++) {
        IndexDef *index = table->index[i];
        if (!same_columns(index, &key)) continue;
        for (u16 k = i + 1; k < table->index_count; k++)
            table->index[k - 1] = table->index[k];
        table->index_count--;
        return index;
    }
    return NULL;
}

/* The key of a WITHOUT ROWID table: repeated columns count once. */
static Err
set_table_key(TableBuild *build, IndexColumn *column, u32 count, Conflict conflict)
{
    u32 kept = 0;
    for (u32 i = 0; i < count; i++) {
        bool seen = false;
        for (u32 k = 0; k < kept; k++)
            seen = seen || (column[k].column == column[i].column &&
                            column[k].collation == column[i].collation);
        if (!seen) column[kept++] = column[i];
    }
    IndexDef *index;
    Err err = make_index(build, column, kept, INDEX_PRIMARY_KEY, conflict, &index);
    if (err != OK) return err;
    if (index == NULL) index = promote_unique(build->table, column, kept);
    ASSERT(index != NULL);
    for (u32 i = 0; i < kept; i++)
        build->table->column[column[i].column].not_null = true;
    index->tree = build->table->tree;
    build->table->primary_key = index;
    return OK;
}

static bool
is_integer_type(const char *type)
{
    return type != NULL && text_compare_nocase(type, "INTEGER") == 0;
}

static Err
add_primary_key(TableBuild *build, IndexColumn *column, u32 count, const AstConstraint *source,
                bool is_column_desc)
{
    TableDef *table = build->table;
    if (build->has_primary_key) {
        return fail(build, "table \"%s\" has more than one primary key", table->name, "");
    }
    build->has_primary_key = true;
    for (u32 i = 0; i < count; i++) {
        if (table->column[column[i].column].generated != 0) {
            return fail(build, "generated columns cannot be part of the PRIMARY KEY", "", "");
        }
        table->column[column[i].column].primary_key = true;
    }
    bool is_alias = count == 1 && !is_column_desc &&
                    is_integer_type(table->column[column[0].column].type_text);
    if (source->autoincrement && !is_alias) {
        return fail(build, "AUTOINCREMENT is only allowed on an INTEGER PRIMARY KEY", "", "");
    }
    if (build->ast->without_rowid) {
        if (source->autoincrement) {
            return fail(build, "AUTOINCREMENT not allowed on WITHOUT ROWID tables", "", "");
        }
        /* SQLite takes what would be a rowid by the column, and forgets the collation of the term.
         */
        if (is_alias) {
            column[0].collation = table->column[column[0].column].collation;
            column[0].host_collation = table->column[column[0].column].host_collation;
        }
        if (is_alias) {
            build->late_key = column;
            build->late_conflict = catalog_conflict(source->conflict);
            return OK;
        }
        return set_table_key(build, column, count, catalog_conflict(source->conflict));
    }
    if (is_alias) {
        table->rowid_column = column[0].column;
        table->rowid_conflict = (u8)catalog_conflict(source->conflict);
        table->autoincrement = source->autoincrement;
        return OK;
    }
    IndexDef *index;
    Err err = make_index(build, column, count, INDEX_PRIMARY_KEY,
                         catalog_conflict(source->conflict), &index);
    if (err != OK || index == NULL) return err;
    return catalog__table_add_index(build->arena, table, index);
}

/* ---- constraints ---- */

static Err
add_check(TableBuild *build, const AstConstraint *source)
{
    TableDef *table = build->table;
    if (table->check_count == build->capacity_checks) {
        u32 capacity = build->capacity_checks * 2 + 4;
        CheckDef *list = ARENA_NEW_ARRAY(build->arena, CheckDef, capacity);
        if (list == NULL) return ERR_NOMEM;
        if (table->check_count > 0) {
            memcpy(list, table->check, sizeof(*list) * table->check_count);
        }
        table->check = list;
        build->capacity_checks = capacity;
    }
    CheckDef *check = &table->check[table->check_count];
    check->sql = catalog__span_copy(build->arena, build->sql, source->expr_text);
    if (check->sql == NULL) return ERR_NOMEM;
    if (ast_name_present(&source->name)) {
        check->name = name_copy(build->arena, &source->name);
        if (check->name == NULL) return ERR_NOMEM;
    }
    table->check_count++;
    return OK;
}

static ForeignAction
foreign_action(AstFkAction action)
{
    switch (action) {
    case AST_FK_NO_ACTION: return FOREIGN_NO_ACTION;
    case AST_FK_RESTRICT: return FOREIGN_RESTRICT;
    case AST_FK_CASCADE: return FOREIGN_CASCADE;
    case AST_FK_SET_NULL: return FOREIGN_SET_NULL;
    case AST_FK_SET_DEFAULT: return FOREIGN_SET_DEFAULT;
    }
    UNREACHABLE();
}

/* `own_column` is the column of a column constraint, else -1. */
static Err
add_foreign_key(TableBuild *build, const AstConstraint *source, i32 own_column)
{
    TableDef *table = build->table;
    const AstForeignKey *ast = source->foreign_key;
    u32 count = own_column >= 0 ? 1 : ast->columns.count;
    if (own_column >= 0 && ast->parent_columns.count > 1) {
        return fail(build, "foreign key on %s should reference only one column of table %s",
                    table->column[own_column].name, name_copy(build->arena, &ast->table));
    }
    if (ast->parent_columns.count != 0 && ast->parent_columns.count != count) {
        return fail(build,
                    "number of columns in foreign key does not match the number of columns in "
                    "the referenced table",
                    "", "");
    }
    if (table->foreign_key_count == build->capacity_keys) {
        u32 capacity = build->capacity_keys * 2 + 4;
        ForeignKeyDef *list = ARENA_NEW_ARRAY(build->arena, ForeignKeyDef, capacity);
        if (list == NULL) return ERR_NOMEM;
        if (table->foreign_key_count > 0) {
            memcpy(list, table->foreign_key, sizeof(*list) * table->foreign_key_count);
        }
        table->foreign_key = list;
        build->capacity_keys = capacity;
    }
    ForeignKeyDef *key = &table->foreign_key[table->foreign_key_count];
    *key = (ForeignKeyDef){
        .parent_table = name_copy(build->arena, &ast->table),
        .column_count = (u16)count,
        .column = ARENA_NEW_ARRAY(build->arena, u16, count),
        .parent_column = ARENA_NEW_ARRAY(build->arena, const char *, count),
        .on_delete = (u8)foreign_action(ast->on_delete),
        .on_update = (u8)foreign_action(ast->on_update),
        .deferred = ast->initially_deferred,
    };
    if (key->parent_table == NULL || key->column == NULL || key->parent_column == NULL) {
        return ERR_NOMEM;
    }
    if (ast_name_present(&source->name)) key->name = name_copy(build->arena, &source->name);
    for (u32 i = 0; i < count; i++) {
        i32 at = own_column;
        if (own_column < 0) at = catalog__column_find(table, ast->columns.items[i].text);
        if (at < 0) {
            return fail(build, "unknown column \"%s\" in foreign key definition",
                        name_copy(build->arena, &ast->columns.items[i]), "");
        }
        key->column[i] = (u16)at;
        if (ast->parent_columns.count == 0) continue;
        key->parent_column[i] = name_copy(build->arena, &ast->parent_columns.items[i]);
        if (key->parent_column[i] == NULL) return ERR_NOMEM;
    }
    table->foreign_key_count++;
    return OK;
}

static Cell
number_value(const AstExpr *expr, bool negative)
{
    Slice text = expr->u.literal;
    if (expr->kind == AST_EXPR_HEX) {
        u64 bits = 0;
        for (size_t i = 0; i < text.bytes; i++) {
            u8 c = text.p[i];
            bits = bits << 4 | (u64)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        }
        return cell_int((i64)(negative ? 0 - bits : bits));
    }
    bool is_int = false;
    i64 i = 0;
    f64 r = 0;
    if (!number_literal(text, &is_int, &i, &r)) return cell_null();
    if (is_int) return cell_int(negative ? -i : i);
    /* -9223372036854775808 is an integer, though its digits alone are not. */
    if (negative && expr->kind == AST_EXPR_INTEGER && r == 9223372036854775808.0) {
        return cell_int(I64_MIN);
    }
    return cell_real(negative ? -r : r);
}

/* The value of a literal default, for rows that are older than their column. */
static Err
literal_value(Arena *arena, const AstExpr *expr, Cell *value_out)
{
    bool negative = false;
    while (expr->kind == AST_EXPR_UNARY &&
           (expr->op == AST_UNARY_NEGATE || expr->op == AST_UNARY_PLUS)) {
        negative ^= expr->op == AST_UNARY_NEGATE;
        expr = expr->u.unary.operand;
    }
    *value_out = cell_null();
    Slice text = expr->u.literal;
    switch (expr->kind) {
    case AST_EXPR_INTEGER:
    case AST_EXPR_HEX:
    case AST_EXPR_REAL: *value_out = number_value(expr, negative); return OK;
    case AST_EXPR_STRING:
    case AST_EXPR_BLOB: {
        u8 *copy = (u8 *)arena_strndup(arena, text.p, text.bytes);
        if (copy == NULL) return ERR_NOMEM;
        *value_out = expr->kind == AST_EXPR_STRING ? cell_text(copy, text.bytes)
                                                   : cell_blob(copy, text.bytes);
        return OK;
    }
    case AST_EXPR_COLUMN: {
        /* DEFAULT word: TRUE, FALSE, or the word as a string. */
        Slice word = expr->u.column.name.text;
        bool bare = expr->u.column.name.quote == AST_QUOTE_NONE;
        if (bare && slice_equal_nocase(word, SLICE_LITERAL("true"))) {
            *value_out = cell_int(1);
        } else if (bare && slice_equal_nocase(word, SLICE_LITERAL("false"))) {
            *value_out = cell_int(0);
        } else {
            char *copy = arena_strndup(arena, word.p, word.bytes);
            if (copy == NULL) return ERR_NOMEM;
            *value_out = cell_text(copy, word.bytes);
        }
        return OK;
    }
    default: return OK; /* Not constant: ALTER TABLE ADD COLUMN refuses it. */
    }
}

/* DEFAULT abc: a string, unless it is TRUE or FALSE. */
static bool
is_default_word(const AstConstraint *source)
{
    if (source->default_kind != AST_DEFAULT_WORD || source->expr->kind != AST_EXPR_COLUMN)
        return false;
    const AstName *name = &source->expr->u.column.name;
    return !slice_equal_nocase(name->text, SLICE_LITERAL("true")) &&
           !slice_equal_nocase(name->text, SLICE_LITERAL("false"));
}

static const char *
quoted(Arena *arena, Slice word)
{
    Buf text = {0};
    Err err = sql_string_append(&text, word);
    char *copy = err == OK ? arena_strndup(arena, text.p, text.bytes) : NULL;
    buf_free(&text);
    return copy;
}

static Err
set_default(TableBuild *build, ColumnDef *column, const AstConstraint *source)
{
    if (column->generated != 0) {
        return fail(build, "cannot use DEFAULT on a generated column", "", "");
    }
    column->default_sql = catalog__span_copy(build->arena, build->sql, source->expr_text);
    if (column->default_sql == NULL) return ERR_NOMEM;
    column->default_expr = column->default_sql;
    if (is_default_word(source)) {
        Slice word = source->expr->u.column.name.text;
        column->default_expr = quoted(build->arena, word);
        column->default_value = cell_text(word.p, word.bytes);
        if (column->default_expr == NULL) return ERR_NOMEM;
        Err err = cell_copy(&column->default_value, build->arena, &column->default_value);
        return err != OK ? err
                         : cell_apply_affinity(&column->default_value, (Affinity)column->affinity,
                                               build->arena);
    }
    Err err = literal_value(build->arena, source->expr, &column->default_value);
    if (err != OK) return err;
    /* SQLite reads the literal's text for rows older than the column: without an affinity 2.0 is
       the integer 2 there, though an INSERT stores the real. */
    Affinity affinity = (Affinity)column->affinity;
    if (affinity == AFFINITY_BLOB && cell_is_number(&column->default_value))
        affinity = AFFINITY_NUMERIC;
    return cell_apply_affinity(&column->default_value, affinity, build->arena);
}

static Err
set_generated(TableBuild *build, ColumnDef *column, const AstConstraint *source)
{
    if (column->default_sql != NULL) {
        return fail(build, "cannot use DEFAULT on a generated column", "", "");
    }
    if (ast_name_present(&source->generated_word) && !source->stored &&
        !slice_equal_nocase(source->generated_word.text, SLICE_LITERAL("virtual"))) {
        return fail(build, "error in generated column \"%s\"", column->name, "");
    }
    column->generated = source->stored ? 2 : 1;
    column->generated_sql = catalog__span_copy(build->arena, build->sql, source->expr_text);
    return column->generated_sql == NULL ? ERR_NOMEM : OK;
}

static Err
one_column_key(TableBuild *build, u32 at, const AstConstraint *source, IndexColumn **column_out)
{
    IndexColumn *column = ARENA_NEW(build->arena, IndexColumn);
    *column_out = column;
    if (column == NULL) return ERR_NOMEM;
    *column = (IndexColumn){
        .column = (u16)at,
        .desc = source->sort == AST_SORT_DESC,
        .collation = build->table->column[at].collation,
        .host_collation = build->table->column[at].host_collation,
    };
    return OK;
}

static Err
column_constraint(TableBuild *build, u32 at, const AstConstraint *source)
{
    ColumnDef *column = &build->table->column[at];
    IndexColumn *key;
    Err err = OK;
    switch (source->kind) {
    case AST_CONSTRAINT_NOT_NULL:
        column->not_null = true;
        column->not_null_conflict = (u8)catalog_conflict(source->conflict);
        return OK;
    case AST_CONSTRAINT_NULL:
    case AST_CONSTRAINT_NAME_ONLY:
    case AST_CONSTRAINT_COLLATE: /* Done before the others. */
    case AST_CONSTRAINT_GENERATED: return OK;
    case AST_CONSTRAINT_PRIMARY_KEY:
        err = one_column_key(build, at, source, &key);
        if (err != OK) return err;
        return add_primary_key(build, key, 1, source, source->sort == AST_SORT_DESC);
    case AST_CONSTRAINT_UNIQUE:
        err = one_column_key(build, at, source, &key);
        if (err != OK) return err;
        return add_unique(build, key, 1, catalog_conflict(source->conflict));
    case AST_CONSTRAINT_CHECK: return add_check(build, source);
    case AST_CONSTRAINT_DEFAULT: return set_default(build, column, source);
    case AST_CONSTRAINT_FOREIGN_KEY: return add_foreign_key(build, source, (i32)at);
    }
    UNREACHABLE();
}

static Err
table_constraint(TableBuild *build, const AstConstraint *source)
{
    if (source->kind == AST_CONSTRAINT_CHECK) return add_check(build, source);
    if (source->kind == AST_CONSTRAINT_FOREIGN_KEY) return add_foreign_key(build, source, -1);
    if (source->kind != AST_CONSTRAINT_PRIMARY_KEY && source->kind != AST_CONSTRAINT_UNIQUE) {
        return OK;
    }
    u32 count = source->terms.count;
    IndexColumn *column = ARENA_NEW_ARRAY(build->arena, IndexColumn, count + 1);
    if (column == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < count; i++) {
        Err err = key_column(build, &source->terms.items[i], &column[i]);
        if (err != OK) return err;
    }
    if (source->kind == AST_CONSTRAINT_UNIQUE) {
        return add_unique(build, column, count, catalog_conflict(source->conflict));
    }
    return add_primary_key(build, column, count, source, false);
}

/* ---- columns ---- */

/* By StrictType; a column of any table that is declared so is shown in these letters. */
static const char *const standard_types[] = {"", "ANY", "INT", "INTEGER", "REAL", "TEXT", "BLOB"};

static const char *
type_copy(Arena *arena, Slice type)
{
    for (u8 i = STRICT_ANY; i <= STRICT_BLOB; i++) {
        Slice name = SLICE(standard_types[i], strlen(standard_types[i]));
        if (slice_equal_nocase(type, name)) return standard_types[i];
    }
    return arena_strndup(arena, type.p, type.bytes);
}

static Err
strict_type(TableBuild *build, ColumnDef *column)
{
    if (!build->ast->strict) return OK;
    if (column->type_text == NULL) {
        return fail(build, "missing datatype for %s.%s", build->table->name, column->name);
    }
    for (u8 i = STRICT_ANY; i <= STRICT_BLOB; i++) {
        if (text_compare_nocase(column->type_text, standard_types[i]) != 0) continue;
        column->strict_type = i;
        if (i == STRICT_ANY) column->affinity = AFFINITY_BLOB;
        return OK;
    }
    return err_set(build->context->msg, ERR_SQL, "unknown datatype for %s.%s: \"%s\"",
                   build->table->name, column->name, column->type_text);
}

/* Name, type, collation and whether it is generated: what other columns' constraints refer to. */
static Err
declare_column(TableBuild *build, u32 at, const AstColumnDef *ast)
{
    ColumnDef *column = &build->table->column[at];
    if (build->context->creating && catalog__column_find(build->table, ast->name.text) >= 0) {
        return fail(build, "duplicate column name: %s", name_copy(build->arena, &ast->name), "");
    }
    column->name = name_copy(build->arena, &ast->name);
    if (column->name == NULL) return ERR_NOMEM;
    build->table->column_count = (u16)(at + 1);
    column->collation = &collation_binary;
    column->affinity = AFFINITY_BLOB;
    if (ast->type.bytes > 0) {
        Slice type = sql_dequote(build->arena, span_slice(build->sql, ast->type));
        column->type_text = type_copy(build->arena, type);
        if (column->type_text == NULL) return ERR_NOMEM;
        column->affinity = (u8)affinity_of_type(type);
    }
    Err err = strict_type(build, column);
    for (u32 i = 0; err == OK && i < ast->constraints.count; i++) {
        const AstConstraint *source = &ast->constraints.items[i];
        if (source->kind == AST_CONSTRAINT_GENERATED) {
            err = set_generated(build, column, source);
        } else if (source->kind == AST_CONSTRAINT_COLLATE) {
            err = catalog__collation(build->arena, source->collation.text, &column->collation,
                                     &column->host_collation);
        }
    }
    return err;
}

static Err
declare_columns(TableBuild *build)
{
    const AstColumnDefs *columns = &build->ast->columns;
    TableDef *table = build->table;
    if (columns->count > PARSE_COLUMNS_MAX) {
        return fail(build, "too many columns on %s", table->name, "");
    }
    table->column = ARENA_NEW_ARRAY(build->arena, ColumnDef, columns->count + 1);
    if (table->column == NULL) return ERR_NOMEM;
    u16 stored = 0;
    for (u32 i = 0; i < columns->count; i++) {
        Err err = declare_column(build, i, &columns->items[i]);
        if (err != OK) return err;
        if (table->column[i].generated != 1) table->column[i].stored_index = stored++;
    }
    table->stored_count = stored;
    for (u32 i = 0; i < columns->count; i++) {
        if (table->column[i].generated == 0) return OK;
    }
    return fail(build, "must have at least one non-generated column", "", "");
}

Err
catalog__table_build(const UnitContext *context, Arena *arena, Slice sql, const AstCreateTable *ast,
                     TableDef *table)
{
    TableBuild build = {.context = context, .arena = arena, .sql = sql, .ast = ast, .table = table};
    table->without_rowid = ast->without_rowid;
    table->strict = ast->strict;
    Err err = declare_columns(&build);
    for (u32 i = 0; err == OK && i < ast->columns.count; i++) {
        const AstConstraints *list = &ast->columns.items[i].constraints;
        for (u32 k = 0; err == OK && k < list->count; k++)
            err = column_constraint(&build, i, &list->items[k]);
    }
    for (u32 i = 0; err == OK && i < ast->constraints.count; i++)
        err = table_constraint(&build, &ast->constraints.items[i]);
    if (err == OK && build.late_key != NULL) {
        err = set_table_key(&build, build.late_key, 1, build.late_conflict);
    }
    if (err != OK) return err;
    if (ast->without_rowid && !build.has_primary_key) {
        return fail(&build, "PRIMARY KEY missing on table %s", table->name, "");
    }
    for (u16 i = 0; table->strict && i < table->column_count; i++) {
        ColumnDef *column = &table->column[i];
        if (column->primary_key && i != table->rowid_column) column->not_null = true;
    }
    return OK;
}
