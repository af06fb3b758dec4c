/*
 * walk.c -- visit every name, expression and SELECT of a tree.
 *
 * Each walk_* function visits one type of node, its parts in the order of the text as far as the
 * tree keeps it (`LIMIT a, b` is turned).
 */
#include "sql/parse/walk.h"

static void walk_expr(const AstVisitor *v, const AstExpr *expr);
static void walk_select(const AstVisitor *v, const AstSelect *select);
static void walk_from(const AstVisitor *v, const AstFrom *from);

static void
walk_name(const AstVisitor *v, AstRole role, const AstName *name)
{
    if (v->name != NULL && ast_name_present(name)) v->name(v->arg, role, name);
}

static void
walk_names(const AstVisitor *v, AstRole role, const AstNames *names)
{
    for (u32 i = 0; i < names->count; i++)
        walk_name(v, role, &names->items[i]);
}

static void
walk_exprs(const AstVisitor *v, const AstExprs *list)
{
    for (u32 i = 0; i < list->count; i++)
        walk_expr(v, list->items[i]);
}

static void
walk_terms(const AstVisitor *v, const AstOrderTerms *terms)
{
    for (u32 i = 0; i < terms->count; i++)
        walk_expr(v, terms->items[i].expr);
}

/* ---- Expressions ---- */

static void
walk_window(const AstVisitor *v, const AstWindow *window)
{
    if (window == NULL) return;
    walk_name(v, AST_ROLE_WINDOW, &window->name);
    walk_name(v, AST_ROLE_WINDOW, &window->base);
    walk_exprs(v, &window->partition_by);
    walk_terms(v, &window->order_by);
    walk_expr(v, window->start.offset);
    walk_expr(v, window->end.offset);
}

static void
walk_function(const AstVisitor *v, const AstFunction *function)
{
    walk_name(v, AST_ROLE_FUNCTION, &function->name);
    walk_exprs(v, &function->args);
    walk_terms(v, &function->order_by);
    walk_expr(v, function->filter);
    walk_window(v, function->over);
}

static void
walk_in(const AstVisitor *v, const AstIn *in)
{
    walk_expr(v, in->operand);
    walk_name(v, AST_ROLE_SCHEMA, &in->schema);
    walk_name(v, AST_ROLE_TABLE, &in->table);
    walk_exprs(v, &in->list);
    walk_select(v, in->select);
}

static void
walk_case(const AstVisitor *v, const AstCase *node)
{
    walk_expr(v, node->operand);
    for (u32 i = 0; i < node->count; i++) {
        walk_expr(v, node->arms[i].when);
        walk_expr(v, node->arms[i].then);
    }
    walk_expr(v, node->otherwise);
}

static void
walk_column(const AstVisitor *v, const AstColumnRef *column)
{
    if (column->qualifier != NULL) {
        walk_name(v, AST_ROLE_SCHEMA, &column->qualifier->schema);
        walk_name(v, AST_ROLE_QUALIFIER, &column->qualifier->table);
    }
    walk_name(v, AST_ROLE_COLUMN, &column->name);
}

static void
walk_expr(const AstVisitor *v, const AstExpr *expr)
{
    if (expr == NULL) return;
    if (v->expr != NULL && !v->expr(v->arg, expr)) return;
    switch ((AstExprKind)expr->kind) {
    case AST_EXPR_NULL:
    case AST_EXPR_INTEGER:
    case AST_EXPR_HEX:
    case AST_EXPR_REAL:
    case AST_EXPR_STRING:
    case AST_EXPR_BLOB:
    case AST_EXPR_CURRENT:
    case AST_EXPR_PARAM: break;
    case AST_EXPR_COLUMN: walk_column(v, &expr->u.column); break;
    case AST_EXPR_UNARY:
    case AST_EXPR_RAISE: walk_expr(v, expr->u.unary.operand); break;
    case AST_EXPR_BINARY:
        walk_expr(v, expr->u.binary.left);
        walk_expr(v, expr->u.binary.right);
        break;
    case AST_EXPR_AND:
    case AST_EXPR_OR:
    case AST_EXPR_ROW: walk_exprs(v, &expr->u.list); break;
    case AST_EXPR_COLLATE:
        walk_expr(v, expr->u.collate.operand);
        walk_name(v, AST_ROLE_COLLATION, expr->u.collate.name);
        break;
    case AST_EXPR_CAST: walk_expr(v, expr->u.cast.operand); break;
    case AST_EXPR_BETWEEN:
        walk_expr(v, expr->u.between.operand);
        walk_expr(v, expr->u.between.low);
        walk_expr(v, expr->u.between.high);
        break;
    case AST_EXPR_LIKE:
        walk_expr(v, expr->u.like->operand);
        walk_name(v, AST_ROLE_FUNCTION, &expr->u.like->op);
        walk_expr(v, expr->u.like->pattern);
        walk_expr(v, expr->u.like->escape);
        break;
    case AST_EXPR_IN: walk_in(v, expr->u.in); break;
    case AST_EXPR_EXISTS:
    case AST_EXPR_SUBQUERY: walk_select(v, expr->u.select); break;
    case AST_EXPR_CASE: walk_case(v, expr->u.case_); break;
    case AST_EXPR_FUNCTION: walk_function(v, expr->u.function); break;
    }
}

/* ---- SELECT ---- */

static void
walk_results(const AstVisitor *v, const AstResults *results)
{
    for (u32 i = 0; i < results->count; i++) {
        const AstResult *result = &results->items[i];
        walk_name(v, AST_ROLE_QUALIFIER, &result->table);
        walk_expr(v, result->expr);
        walk_name(v, AST_ROLE_ALIAS, &result->alias);
    }
}

static void
walk_from(const AstVisitor *v, const AstFrom *from)
{
    if (from == NULL) return;
    for (u32 i = 0; i < from->count; i++) {
        const AstFromItem *item = &from->items[i];
        walk_name(v, AST_ROLE_SCHEMA, &item->schema);
        walk_name(v, AST_ROLE_TABLE, &item->name);
        walk_exprs(v, &item->args);
        walk_select(v, item->select);
        walk_from(v, item->nested);
        walk_name(v, AST_ROLE_ALIAS, &item->alias);
        walk_name(v, AST_ROLE_INDEX, &item->indexed_by);
        walk_expr(v, item->on);
        walk_names(v, AST_ROLE_COLUMN, &item->using_columns);
    }
}

static void
walk_with(const AstVisitor *v, const AstWith *with)
{
    if (with == NULL) return;
    for (u32 i = 0; i < with->count; i++) {
        walk_name(v, AST_ROLE_TABLE, &with->items[i].name);
        walk_names(v, AST_ROLE_COLUMN, &with->items[i].columns);
        walk_select(v, with->items[i].select);
    }
}

static void
walk_arm(const AstVisitor *v, const AstArm *arm)
{
    for (u32 i = 0; i < arm->values.count; i++)
        walk_exprs(v, &arm->values.items[i]);
    walk_results(v, &arm->results);
    walk_from(v, arm->from);
    walk_expr(v, arm->where);
    walk_exprs(v, &arm->group_by);
    walk_expr(v, arm->having);
    for (u32 i = 0; i < arm->window_count; i++)
        walk_window(v, &arm->windows[i]);
}

static void
walk_select(const AstVisitor *v, const AstSelect *select)
{
    if (select == NULL) return;
    if (v->select != NULL && !v->select(v->arg, select)) return;
    walk_with(v, select->with);
    for (u32 i = 0; i < select->count; i++)
        walk_arm(v, &select->arms[i]);
    walk_terms(v, &select->order_by);
    walk_expr(v, select->limit);
    walk_expr(v, select->offset);
}

/* ---- Changing data ---- */

static void
walk_target(const AstVisitor *v, const AstTarget *target)
{
    walk_name(v, AST_ROLE_SCHEMA, &target->schema);
    walk_name(v, AST_ROLE_TABLE, &target->name);
    walk_name(v, AST_ROLE_ALIAS, &target->alias);
    walk_name(v, AST_ROLE_INDEX, &target->indexed_by);
}

static void
walk_sets(const AstVisitor *v, const AstSets *sets)
{
    for (u32 i = 0; i < sets->count; i++) {
        walk_names(v, AST_ROLE_COLUMN, &sets->items[i].columns);
        walk_expr(v, sets->items[i].value);
    }
}

static void
walk_insert(const AstVisitor *v, const AstInsert *insert)
{
    walk_with(v, insert->with);
    walk_target(v, &insert->target);
    walk_names(v, AST_ROLE_COLUMN, &insert->columns);
    walk_select(v, insert->select);
    for (u32 i = 0; i < insert->upserts.count; i++) {
        const AstUpsert *upsert = &insert->upserts.items[i];
        walk_terms(v, &upsert->target);
        walk_expr(v, upsert->target_where);
        walk_sets(v, &upsert->sets);
        walk_expr(v, upsert->where);
    }
    walk_results(v, &insert->returning);
}

static void
walk_change_order(const AstVisitor *v, const AstSelect *order)
{
    if (order == NULL) return;
    walk_terms(v, &order->order_by);
    walk_expr(v, order->limit);
    walk_expr(v, order->offset);
}

static void
walk_update(const AstVisitor *v, const AstUpdate *update)
{
    walk_with(v, update->with);
    walk_target(v, &update->target);
    walk_sets(v, &update->sets);
    walk_from(v, update->from);
    walk_expr(v, update->where);
    walk_results(v, &update->returning);
    walk_change_order(v, update->order);
}

static void
walk_delete(const AstVisitor *v, const AstDelete *delete_)
{
    walk_with(v, delete_->with);
    walk_target(v, &delete_->target);
    walk_expr(v, delete_->where);
    walk_results(v, &delete_->returning);
    walk_change_order(v, delete_->order);
}

/* ---- Schema ---- */

static void
walk_constraint(const AstVisitor *v, const AstConstraint *constraint)
{
    /* The name stays in force for what follows; it is visited where it is written. */
    if (constraint->name_clause.bytes != 0) {
        walk_name(v, AST_ROLE_CONSTRAINT, &constraint->name);
    }
    walk_name(v, AST_ROLE_COLLATION, &constraint->collation);
    walk_terms(v, &constraint->terms);
    walk_expr(v, constraint->expr);
    walk_name(v, AST_ROLE_OTHER, &constraint->generated_word);
    const AstForeignKey *key = constraint->foreign_key;
    if (key == NULL) return;
    walk_names(v, AST_ROLE_COLUMN, &key->columns);
    walk_name(v, AST_ROLE_TABLE, &key->table);
    walk_names(v, AST_ROLE_COLUMN, &key->parent_columns);
    walk_name(v, AST_ROLE_OTHER, &key->match);
}

static void
walk_constraints(const AstVisitor *v, const AstConstraints *constraints)
{
    for (u32 i = 0; i < constraints->count; i++)
        walk_constraint(v, &constraints->items[i]);
}

static void
walk_column_def(const AstVisitor *v, const AstColumnDef *column)
{
    walk_name(v, AST_ROLE_COLUMN, &column->name);
    walk_constraints(v, &column->constraints);
}

static void
walk_create_table(const AstVisitor *v, const AstCreateTable *table)
{
    walk_name(v, AST_ROLE_SCHEMA, &table->schema);
    walk_name(v, AST_ROLE_TABLE, &table->name);
    for (u32 i = 0; i < table->columns.count; i++)
        walk_column_def(v, &table->columns.items[i]);
    walk_constraints(v, &table->constraints);
    walk_select(v, table->as_select);
}

static void
walk_create_index(const AstVisitor *v, const AstCreateIndex *index)
{
    walk_name(v, AST_ROLE_SCHEMA, &index->schema);
    walk_name(v, AST_ROLE_INDEX, &index->name);
    walk_name(v, AST_ROLE_TABLE, &index->table);
    walk_terms(v, &index->terms);
    walk_expr(v, index->where);
}

static void
walk_create_view(const AstVisitor *v, const AstCreateView *view)
{
    walk_name(v, AST_ROLE_SCHEMA, &view->schema);
    walk_name(v, AST_ROLE_TABLE, &view->name);
    walk_names(v, AST_ROLE_COLUMN, &view->columns);
    walk_select(v, view->select);
}

static void
walk_create_trigger(const AstVisitor *v, const AstCreateTrigger *trigger)
{
    walk_name(v, AST_ROLE_SCHEMA, &trigger->schema);
    walk_name(v, AST_ROLE_TRIGGER, &trigger->name);
    walk_names(v, AST_ROLE_COLUMN, &trigger->columns);
    walk_name(v, AST_ROLE_SCHEMA, &trigger->table_schema);
    walk_name(v, AST_ROLE_TABLE, &trigger->table);
    walk_expr(v, trigger->when);
    for (u32 i = 0; i < trigger->count; i++)
        ast_walk_statement(v, trigger->steps[i]);
}

static void
walk_create_virtual(const AstVisitor *v, const AstCreateVirtual *table)
{
    walk_name(v, AST_ROLE_SCHEMA, &table->schema);
    walk_name(v, AST_ROLE_TABLE, &table->name);
    walk_name(v, AST_ROLE_OTHER, &table->module);
}

static void
walk_alter(const AstVisitor *v, const AstAlter *alter)
{
    walk_name(v, AST_ROLE_SCHEMA, &alter->schema);
    walk_name(v, AST_ROLE_TABLE, &alter->table);
    walk_name(v, AST_ROLE_COLUMN, &alter->column);
    bool table = alter->kind == AST_ALTER_RENAME_TABLE;
    walk_name(v, table ? AST_ROLE_TABLE : AST_ROLE_COLUMN, &alter->new_name);
    if (alter->definition != NULL) walk_column_def(v, alter->definition);
    if (alter->constraint != NULL) {
        walk_constraint(v, alter->constraint);
    } else {
        walk_name(v, AST_ROLE_CONSTRAINT, &alter->constraint_name);
    }
}

static void
walk_drop(const AstVisitor *v, AstRole role, const AstDrop *drop)
{
    walk_name(v, AST_ROLE_SCHEMA, &drop->schema);
    walk_name(v, role, &drop->name);
}

void
ast_walk_expr(const AstVisitor *visitor, const AstExpr *expr)
{
    walk_expr(visitor, expr);
}

void
ast_walk_select(const AstVisitor *visitor, const AstSelect *select)
{
    walk_select(visitor, select);
}

void
ast_walk_statement(const AstVisitor *v, const AstStatement *s)
{
    switch (s->kind) {
    case AST_STMT_SELECT: walk_select(v, s->u.select); break;
    case AST_STMT_INSERT: walk_insert(v, s->u.insert); break;
    case AST_STMT_UPDATE: walk_update(v, s->u.update); break;
    case AST_STMT_DELETE: walk_delete(v, s->u.delete_); break;
    case AST_STMT_CREATE_TABLE: walk_create_table(v, s->u.create_table); break;
    case AST_STMT_CREATE_INDEX: walk_create_index(v, s->u.create_index); break;
    case AST_STMT_CREATE_VIEW: walk_create_view(v, s->u.create_view); break;
    case AST_STMT_CREATE_TRIGGER: walk_create_trigger(v, s->u.create_trigger); break;
    case AST_STMT_CREATE_VIRTUAL: walk_create_virtual(v, s->u.create_virtual); break;
    case AST_STMT_DROP_TABLE:
    case AST_STMT_DROP_VIEW: walk_drop(v, AST_ROLE_TABLE, s->u.drop); break;
    case AST_STMT_DROP_INDEX: walk_drop(v, AST_ROLE_INDEX, s->u.drop); break;
    case AST_STMT_DROP_TRIGGER: walk_drop(v, AST_ROLE_TRIGGER, s->u.drop); break;
    case AST_STMT_ALTER: walk_alter(v, s->u.alter); break;
    case AST_STMT_BEGIN:
    case AST_STMT_COMMIT:
    case AST_STMT_ROLLBACK:
    case AST_STMT_SAVEPOINT:
    case AST_STMT_RELEASE:
    case AST_STMT_ROLLBACK_TO:
    case AST_STMT_SET_TRANSACTION:
    case AST_STMT_SET_SESSION: walk_name(v, AST_ROLE_OTHER, &s->u.transaction->name); break;
    case AST_STMT_PRAGMA:
        walk_name(v, AST_ROLE_SCHEMA, &s->u.pragma->schema);
        walk_name(v, AST_ROLE_OTHER, &s->u.pragma->name);
        break;
    case AST_STMT_ATTACH:
    case AST_STMT_DETACH:
        walk_expr(v, s->u.attach->file);
        walk_expr(v, s->u.attach->name);
        walk_expr(v, s->u.attach->key);
        break;
    case AST_STMT_ANALYZE:
    case AST_STMT_REINDEX:
        walk_name(v, AST_ROLE_SCHEMA, &s->u.object->schema);
        walk_name(v, AST_ROLE_OTHER, &s->u.object->name);
        break;
    case AST_STMT_VACUUM:
        walk_name(v, AST_ROLE_SCHEMA, &s->u.vacuum->schema);
        walk_expr(v, s->u.vacuum->into);
        break;
    case AST_STMT_COUNT_: UNREACHABLE();
    }
}
