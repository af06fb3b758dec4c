/*
 * catalog.c -- catalog snapshots: made from units, indexed by name, counted.
 *
 * A catalog owns one reference on each of its units and three name tables over them.  Deriving the
 * next version copies the array of units and rebuilds the name tables; nothing is parsed again.
 */
#include "sql/catalog/catalog.h"

#include "sql/catalog/catalog_unit.h"

typedef enum NameKind { NAME_TABLE, NAME_INDEX, NAME_TRIGGER, NAME_UNIT, NAME_KINDS } NameKind;

/* Open addressing over (name, object); names compare without case. */
typedef struct NameMap {
    u32 slots; /* A power of two. */
    struct NameSlot {
        Slice name;
        const void *object;
    } * slot;
} NameMap;

struct Catalog {
    RtU32 references;
    u64 version;
    Arena arena;
    const char *schema;
    u8 database;
    TreeId schema_tree;
    i64 rowid_max;
    u32 unit_count;
    CatalogUnit **unit;
    u32 table_count;
    const TableDef **table;
    const TriggerDef **loose;
    u32 loose_count;
    NameMap map[NAME_KINDS];
    TableDef schema_table;
    ColumnDef schema_column[5];
};

static Slice
text_slice(const char *text)
{
    return SLICE(text, strlen(text));
}

/* ---- name maps ---- */

static Err
map_init(NameMap *map, Arena *arena, u32 count)
{
    map->slots = 8;
    while (map->slots < count * 2)
        map->slots *= 2;
    map->slot = ARENA_NEW_ARRAY(arena, struct NameSlot, map->slots);
    return map->slot == NULL ? ERR_NOMEM : OK;
}

static struct NameSlot *
map_slot(const NameMap *map, Slice name)
{
    for (u32 at = ast_name_hash(name);; at++) {
        struct NameSlot *slot = &map->slot[at & (map->slots - 1)];
        if (slot->object == NULL || slice_equal_nocase(slot->name, name)) return slot;
    }
}

/* The first object of a name stays. */
static void
map_add(NameMap *map, const char *name, const void *object)
{
    struct NameSlot *slot = map_slot(map, text_slice(name));
    if (slot->object == NULL) *slot = (struct NameSlot){text_slice(name), object};
}

static const void *
map_find(const NameMap *map, Slice name)
{
    return map_slot(map, name)->object;
}

/* ---- making a catalog ---- */

static const char *const schema_column_names[5] = {"type", "name", "tbl_name", "rootpage", "sql"};

/* The table sqlite_schema itself, which has no row. */
static void
make_schema_table(Catalog *catalog, Store *store)
{
    for (u32 i = 0; i < 5; i++) {
        bool is_root = i == 3;
        catalog->schema_column[i] = (ColumnDef){
            .name = schema_column_names[i],
            .type_text = is_root ? "INT" : "TEXT",
            .affinity = is_root ? AFFINITY_INTEGER : AFFINITY_TEXT,
            .stored_index = (u16)i,
            .collation = &collation_binary,
        };
    }
    bool is_temp = catalog->database == 1;
    catalog->schema_table = (TableDef){
        .name = is_temp ? "sqlite_temp_master" : "sqlite_master",
        .schema = catalog->schema,
        .database = catalog->database,
        .store = store,
        .tree = catalog->schema_tree,
        .is_system = true,
        .column_count = 5,
        .stored_count = 5,
        .column = catalog->schema_column,
        .rowid_column = COLUMN_ROWID,
        .sql = is_temp ? "CREATE TEMP TABLE sqlite_temp_master(type text,name text,tbl_name text,"
                         "rootpage int,sql text)"
                       : "CREATE TABLE sqlite_master(type text,name text,tbl_name text,"
                         "rootpage int,sql text)",
        .schema_lock_no = catalog->schema_tree,
        .version = (u32)catalog->version,
    };
}

bool
catalog__is_loose(const Catalog *catalog, const CatalogUnit *unit, const TriggerDef *trigger)
{
    if (unit->table == NULL) return true;
    const char *schema = trigger->table_schema;
    return schema != NULL && !slice_equal_nocase(text_slice(schema), text_slice(catalog->schema));
}

/* Only the temporary database has triggers on tables of others. */
static Err
list_loose(Catalog *catalog, u32 triggers)
{
    if (catalog->database != 1) return OK;
    catalog->loose = ARENA_NEW_ARRAY(&catalog->arena, const TriggerDef *, triggers + 1);
    if (catalog->loose == NULL) return ERR_NOMEM;
    for (u32 i = catalog->unit_count; i-- > 0;) {
        const CatalogUnit *unit = catalog->unit[i];
        for (u32 k = 0; k < unit->trigger_count; k++) {
            if (!catalog__is_loose(catalog, unit, unit->trigger[k])) continue;
            catalog->loose[catalog->loose_count++] = unit->trigger[k];
        }
    }
    return OK;
}

static Err
index_names(Catalog *catalog)
{
    u32 tables = 0, indexes = 0, triggers = 0;
    for (u32 i = 0; i < catalog->unit_count; i++) {
        const CatalogUnit *unit = catalog->unit[i];
        tables += unit->table != NULL;
        indexes += unit->table != NULL ? unit->table->index_count + 1u : 0;
        triggers += unit->trigger_count;
    }
    const u32 sizes[NAME_KINDS] = {tables + 4, indexes, triggers, catalog->unit_count};
    for (u32 kind = 0; kind < NAME_KINDS; kind++) {
        Err err = map_init(&catalog->map[kind], &catalog->arena, sizes[kind]);
        if (err != OK) return err;
    }
    catalog->table = ARENA_NEW_ARRAY(&catalog->arena, const TableDef *, tables + 1);
    if (catalog->table == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < catalog->unit_count; i++) {
        const CatalogUnit *unit = catalog->unit[i];
        if (unit->table != NULL) map_add(&catalog->map[NAME_UNIT], unit->table_name, unit);
    }
    for (u32 i = 0; i < catalog->unit_count; i++) {
        const CatalogUnit *unit = catalog->unit[i];
        if (unit->table == NULL) map_add(&catalog->map[NAME_UNIT], unit->table_name, unit);
        for (u32 k = 0; k < unit->trigger_count; k++)
            map_add(&catalog->map[NAME_TRIGGER], unit->trigger[k]->name, unit->trigger[k]);
        const TableDef *table = unit->table;
        if (table == NULL) continue;
        catalog->table[catalog->table_count++] = table;
        map_add(&catalog->map[NAME_TABLE], table->name, table);
        for (u32 k = 0; k < table->index_count; k++)
            map_add(&catalog->map[NAME_INDEX], table->index[k]->name, table->index[k]);
        if (table->primary_key != NULL) {
            map_add(&catalog->map[NAME_INDEX], table->primary_key->name, table->primary_key);
        }
    }
    NameMap *names = &catalog->map[NAME_TABLE];
    map_add(names, catalog->schema_table.name, &catalog->schema_table);
    if (catalog->database == 1) {
        map_add(names, "sqlite_temp_schema", &catalog->schema_table);
    }
    map_add(names, "sqlite_master", &catalog->schema_table);
    map_add(names, "sqlite_schema", &catalog->schema_table);
    return list_loose(catalog, triggers);
}

/* Takes over one reference on each unit, also on error. */
static Err
make_catalog(const char *schema, u8 database, Store *store, u64 version, TreeId schema_tree,
             CatalogUnit **unit, u32 unit_count, Catalog **catalog_out)
{
    *catalog_out = NULL;
    Catalog *catalog = MEM_NEW(Catalog);
    Err err = ERR_NOMEM;
    if (catalog == NULL) goto fail;
    arena_init(&catalog->arena, NULL);
    rt_word_init(&catalog->references, 1);
    catalog->version = version;
    catalog->database = database;
    catalog->schema_tree = schema_tree;
    catalog->schema = arena_strndup(&catalog->arena, schema, strlen(schema));
    catalog->unit = ARENA_NEW_ARRAY(&catalog->arena, CatalogUnit *, unit_count + 1);
    if (catalog->schema == NULL || catalog->unit == NULL) goto fail;
    for (u32 i = 0; i < unit_count; i++) {
        catalog->unit[i] = unit[i];
        for (u32 k = 0; k < unit[i]->row_count; k++)
            catalog->rowid_max = MAX_OF(catalog->rowid_max, unit[i]->row[k].rowid);
    }
    make_schema_table(catalog, store);
    catalog->unit_count = unit_count;
    err = index_names(catalog);
    if (err != OK) {
        catalog_release(catalog);
        return err;
    }
    *catalog_out = catalog;
    return OK;

fail:
    for (u32 i = 0; i < unit_count; i++)
        catalog__unit_release(unit[i]);
    if (catalog != NULL) arena_free(&catalog->arena);
    mem_free(catalog);
    return err;
}

Catalog *
catalog_retain(Catalog *catalog)
{
    rt_fetch_add(&catalog->references, 1);
    return catalog;
}

void
catalog_release(Catalog *catalog)
{
    if (catalog == NULL || rt_fetch_sub(&catalog->references, 1) > 1) return;
    for (u32 i = 0; i < catalog->unit_count; i++)
        catalog__unit_release(catalog->unit[i]);
    arena_free(&catalog->arena);
    mem_free(catalog);
}

u64
catalog_bytes(const Catalog *catalog)
{
    return sizeof(*catalog) + catalog->arena.total_bytes;
}

u64
catalog_get_version(const Catalog *catalog)
{
    return catalog->version;
}

u32
catalog__unit_count(const Catalog *catalog)
{
    return catalog->unit_count;
}

const CatalogUnit *
catalog__unit_at(const Catalog *catalog, u32 at)
{
    ASSERT(at < catalog->unit_count);
    return catalog->unit[at];
}

TreeId
catalog__schema_tree(const Catalog *catalog)
{
    return catalog->schema_tree;
}

i64
catalog__rowid_max(const Catalog *catalog)
{
    return catalog->rowid_max;
}

CatalogUnit *
catalog__unit_of(const Catalog *catalog, Slice table_name)
{
    return (CatalogUnit *)(uintptr_t)map_find(&catalog->map[NAME_UNIT], table_name);
}

Err
catalog__derive(const Catalog *old, u64 version, const CatalogUnit *replaced, CatalogUnit *unit,
                Catalog **catalog_out)
{
    *catalog_out = NULL;
    CatalogUnit **list = MEM_NEW_ARRAY(CatalogUnit *, old->unit_count + 1);
    if (list == NULL) {
        if (unit != NULL) catalog__unit_release(unit);
        return ERR_NOMEM;
    }
    u32 count = 0;
    bool placed = unit == NULL;
    for (u32 i = 0; i < old->unit_count; i++) {
        if (old->unit[i] == replaced) {
            if (!placed) list[count++] = unit;
            placed = true;
            continue;
        }
        rt_fetch_add(&old->unit[i]->references, 1);
        list[count++] = old->unit[i];
    }
    if (!placed) list[count++] = unit;
    Err err = make_catalog(old->schema, old->database, old->schema_table.store, version,
                           old->schema_tree, list, count, catalog_out);
    mem_free(list);
    return err;
}

/* ---- loading ---- */

typedef struct RowGroup {
    u32 first, count; /* In the order array. */
} RowGroup;

/* Order the rows by table name (first appearance), keeping rowid order inside; returns the groups.
 */
static Err
group_rows(Arena *arena, const SchemaRow *row, u32 count, SchemaRow **ordered_out,
           RowGroup **group_out, u32 *group_count_out)
{
    NameMap map;
    u32 *group_of = ARENA_NEW_ARRAY(arena, u32, count + 1);
    RowGroup *group = ARENA_NEW_ARRAY(arena, RowGroup, count + 1);
    SchemaRow *ordered = ARENA_NEW_ARRAY(arena, SchemaRow, count + 1);
    if (group_of == NULL || group == NULL || ordered == NULL) return ERR_NOMEM;
    Err err = map_init(&map, arena, count);
    if (err != OK) return err;
    u32 groups = 0;
    for (u32 i = 0; i < count; i++) {
        struct NameSlot *slot = map_slot(&map, text_slice(row[i].table));
        if (slot->object == NULL) {
            *slot = (struct NameSlot){text_slice(row[i].table), &group[groups++]};
        }
        group_of[i] = (u32)((const RowGroup *)slot->object - group);
        group[group_of[i]].count++;
    }
    for (u32 g = 1; g < groups; g++)
        group[g].first = group[g - 1].first + group[g - 1].count;
    u32 *filled = ARENA_NEW_ARRAY(arena, u32, groups + 1);
    if (filled == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < count; i++) {
        u32 g = group_of[i];
        ordered[group[g].first + filled[g]++] = row[i];
    }
    *ordered_out = ordered;
    *group_out = group;
    *group_count_out = groups;
    return OK;
}

static Err
load_units(const UnitContext *context, Arena *scratch, const SchemaRow *row, u32 row_count,
           CatalogUnit ***unit_out, u32 *count_out)
{
    SchemaRow *ordered;
    RowGroup *group;
    u32 groups;
    *count_out = 0;
    Err err = group_rows(scratch, row, row_count, &ordered, &group, &groups);
    if (err != OK) return err;
    CatalogUnit **unit = ARENA_NEW_ARRAY(scratch, CatalogUnit *, groups + 1);
    if (unit == NULL) return ERR_NOMEM;
    for (u32 g = 0; g < groups; g++) {
        err = catalog__unit_build(context, ordered + group[g].first, group[g].count, &unit[g]);
        if (err != OK) {
            for (u32 k = 0; k < g; k++)
                catalog__unit_release(unit[k]);
            return err;
        }
    }
    *unit_out = unit;
    *count_out = groups;
    return OK;
}

Err
catalog_load(StoreTxn *txn, const CatalogEnv *env, Catalog **catalog_out, ErrMsg *msg)
{
    *catalog_out = NULL;
    Arena scratch;
    arena_init(&scratch, NULL);
    u64 version = 0;
    i64 tree = 0;
    SchemaRow *row = NULL;
    CatalogUnit **unit = NULL;
    u32 row_count = 0, unit_count = 0;

    Err err = catalog_version(txn, &version);
    if (err == OK) err = catalog_get_number(txn, SCHEMA_TREE_NUMBER, &tree);
    if (err == OK && tree != TREE_NONE) {
        err = catalog__rows_read(txn, (TreeId)tree, &scratch, &row, &row_count, msg);
    }
    if (err != OK) goto done;
    UnitContext context = {.env = env, .version = (u32)version, .msg = msg};
    err = load_units(&context, &scratch, row, row_count, &unit, &unit_count);
    if (err != OK) goto done;
    err = make_catalog(env->schema, env->database, env->store, version, (TreeId)tree, unit,
                       unit_count, catalog_out);
    if (err == OK) err = catalog__statistics_load(txn, *catalog_out);
    if (err != OK) {
        catalog_release(*catalog_out);
        *catalog_out = NULL;
    }

done:
    if (err != OK && msg != NULL && msg->err == OK) {
        const ErrMsg *cause = store_txn_error(txn);
        err_set(msg, err, "%s", cause->err == err ? err_message(cause) : err_text(err));
    }
    arena_free(&scratch);
    return err;
}

/* ---- look-ups ---- */

const TableDef *
catalog_find_table(const Catalog *catalog, Slice name)
{
    return map_find(&catalog->map[NAME_TABLE], name);
}

const IndexDef *
catalog_find_index(const Catalog *catalog, Slice name)
{
    return map_find(&catalog->map[NAME_INDEX], name);
}

const TriggerDef *
catalog_find_trigger(const Catalog *catalog, Slice name)
{
    return map_find(&catalog->map[NAME_TRIGGER], name);
}

u32
catalog_table_count(const Catalog *catalog)
{
    return catalog->table_count;
}

const TableDef *
catalog_table_at(const Catalog *catalog, u32 at)
{
    ASSERT(at < catalog->table_count);
    return catalog->table[at];
}

u32
catalog_triggers(const Catalog *catalog, const TableDef *table,
                 const TriggerDef *const **triggers_out)
{
    const CatalogUnit *unit = catalog__unit_of(catalog, text_slice(table->name));
    if (unit == NULL) return 0;
    *triggers_out = (const TriggerDef *const *)unit->trigger;
    return unit->trigger_count;
}

bool
catalog_has_objects(const Catalog *catalog)
{
    return catalog->unit_count > 0;
}

u32
catalog_loose_triggers(const Catalog *catalog, const TriggerDef *const **triggers_out)
{
    *triggers_out = (const TriggerDef *const *)catalog->loose;
    return catalog->loose_count;
}

const TableDef *
catalog_loose_table(const CatalogView *view, const TriggerDef *trigger)
{
    Slice name = text_slice(trigger->table);
    if (trigger->table_schema != NULL)
        return catalog_view_table(view, text_slice(trigger->table_schema), name, NULL);
    const TableDef *table = NULL;
    for (u32 i = 0; table == NULL && i < view->count; i++) {
        if (i == 1 || view->db[i].catalog == NULL) continue;
        table = catalog_find_table(view->db[i].catalog, name);
    }
    return table;
}

CatalogUnit *
catalog__unit_of_trigger(const Catalog *catalog, const TriggerDef *trigger)
{
    for (u32 i = 0; i < catalog->unit_count; i++) {
        CatalogUnit *unit = catalog->unit[i];
        for (u32 k = 0; k < unit->trigger_count; k++) {
            if (unit->trigger[k] == trigger) return unit;
        }
    }
    return NULL;
}

i32
catalog_view_database(const CatalogView *view, Slice schema)
{
    for (u32 i = 0; i < view->count; i++) {
        if (view->db[i].name == NULL) continue;
        if (slice_equal_nocase(schema, text_slice(view->db[i].name))) return (i32)i;
    }
    return -1;
}

/* Search order without a schema name: temp, main, then the attached ones. */
static const void *
view_find(const CatalogView *view, Slice schema, Slice name, NameKind kind, u32 *database_out,
          bool *schema_found_out)
{
    if (schema_found_out != NULL) *schema_found_out = true;
    if (schema.p != NULL) {
        i32 at = catalog_view_database(view, schema);
        if (schema_found_out != NULL) *schema_found_out = at >= 0;
        if (at < 0 || view->db[at].catalog == NULL) return NULL;
        if (database_out != NULL) *database_out = (u32)at;
        return map_find(&view->db[at].catalog->map[kind], name);
    }
    for (u32 i = 0; i < view->count; i++) {
        u32 at = i == 0 && view->count > 1 ? 1 : i == 1 ? 0 : i;
        const Catalog *catalog = view->db[at].catalog;
        if (catalog == NULL) continue;
        const void *object = map_find(&catalog->map[kind], name);
        /* An unqualified sqlite_schema is main's. */
        if (object == &catalog->schema_table && at == 1 &&
            !slice_equal_nocase(name, SLICE_LITERAL("sqlite_temp_master")) &&
            !slice_equal_nocase(name, SLICE_LITERAL("sqlite_temp_schema"))) {
            continue;
        }
        if (object != NULL) {
            if (database_out != NULL) *database_out = at;
            return object;
        }
    }
    return NULL;
}

const TableDef *
catalog_view_table(const CatalogView *view, Slice schema, Slice name, bool *schema_found_out)
{
    return view_find(view, schema, name, NAME_TABLE, NULL, schema_found_out);
}

const IndexDef *
catalog_view_index(const CatalogView *view, Slice schema, Slice name, bool *schema_found_out)
{
    return view_find(view, schema, name, NAME_INDEX, NULL, schema_found_out);
}

const TriggerDef *
catalog_view_trigger(const CatalogView *view, Slice schema, Slice name, u32 *database_out)
{
    return view_find(view, schema, name, NAME_TRIGGER, database_out, NULL);
}
