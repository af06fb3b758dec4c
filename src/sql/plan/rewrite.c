/*
 * rewrite.c -- subqueries in FROM melt into the query around them where nobody can tell.
 *
 * A flattened source stays for the sake of its names: its columns are then read through
 * (plan__see_through), while the stamps of comparisons stay as they were bound.
 */
#include "sql/plan/build.h"

/* Only total queries without a row-shaping clause; order is given up only where it cannot show. */
static bool
may_flatten(const Core *core, const FromItem *item)
{
    const Source *source = item->source;
    if (source == NULL || source->flat) return false;
    if (source->kind == SOURCE_CTE) {
        if (source->cte->uses != 1 || source->cte->ast->materialize == AST_MATERIALIZE_YES)
            return false;
    } else if (source->kind != SOURCE_QUERY) {
        return false;
    }
    const Query *query = source->query;
    if (query->arm_count != 1 || query->is_recursive) return false;
    if (query->limit != NULL || query->offset != NULL || query->order_count > 0) return false;
    if (query->klass != PLAN_TOTAL) return false;
    const Core *inner = query->arm[0];
    if (inner->is_aggregate || inner->win_count > 0 || inner->distinct || inner->is_values ||
        inner->source_count == 0)
        return false;
    if (inner->has_right_join || core->has_right_join) return false;
    if ((item->join & (AST_JOIN_LEFT | AST_JOIN_RIGHT)) != 0) return false;
    if (inner->has_outer_join && (item->join & AST_JOIN_CROSS) != 0) return false;
    return true;
}

/* Sources that the core brings along: flattened ones live on only by name. */
static u32
live_sources(const Core *core)
{
    u32 count = 0;
    for (u32 i = 0; i < core->source_count; i++)
        count += core->source[i]->flat ? 0 : 1;
    return count;
}

/* What is inside is flattened first, so that its size is known. */
static bool
can_flatten(Binder *b, const Core *core, const FromItem *item)
{
    if (!may_flatten(core, item)) return false;
    Core *inner = item->source->query->arm[0];
    if (!plan__flatten(b, inner)) return false;
    return core->source_count + live_sources(inner) <= SOURCES_MAX;
}

static bool
melt(Binder *b, Core *core, const FromItem *item, FromList *out)
{
    Source *source = item->source;
    Core *inner = source->query->arm[0];
    for (u32 i = 0; i < inner->source_count; i++) {
        if (inner->source[i]->flat) continue;
        if (!bind__core_add_source(b, core, inner->source[i])) return false;
    }
    for (u32 i = 0; i < inner->where.count; i++) {
        if (!bind__push(b, &core->where, inner->where.items[i])) return false;
    }
    core->has_outer_join |= inner->has_outer_join;
    source->flat = true;
    for (u32 i = 0; i < inner->from.count; i++) {
        FromItem copy = inner->from.item[i];
        if (i == 0) copy.join = item->join;
        out->item[out->count++] = copy;
    }
    return true;
}

static void
renumber(const Core *core, FromList *list)
{
    for (u32 i = 0; i < list->count; i++) {
        FromItem *item = &list->item[i];
        if (item->source != NULL) {
            item->mask = (u64)1 << item->source->index;
            continue;
        }
        renumber(core, item->nested);
        item->mask = 0;
        for (u32 k = 0; k < item->nested->count; k++)
            item->mask |= item->nested->item[k].mask;
    }
}

bool
plan__flatten(Binder *b, Core *core)
{
    if (core->rewritten || b->ctx->plain) return true;
    core->rewritten = true;
    u32 total = 0;
    bool any = false;
    for (u32 i = 0; i < core->from.count; i++) {
        bool flat = can_flatten(b, core, &core->from.item[i]);
        any |= flat;
        total += flat ? core->from.item[i].source->query->arm[0]->from.count : 1;
    }
    if (!any) return true;
    FromList out = {.item = BIND_ARRAY(b, FromItem, total), .capacity = total};
    if (out.item == NULL) return false;
    for (u32 i = 0; i < core->from.count; i++) {
        const FromItem *item = &core->from.item[i];
        if (can_flatten(b, core, item)) {
            if (!melt(b, core, item, &out)) return false;
        } else {
            out.item[out.count++] = *item;
        }
    }
    core->from = out;
    renumber(core, &core->from);
    return b->err == OK;
}
