/*
 * tpcc.c -- T=tpcc: the standard mix without think time, at two sizes, by 1 to 32 connections.
 *
 * The unit is tpmC: new orders a minute.  Conditions 1 to 4 are checked after every run.
 */
#include "tpcc.h"

#include <string.h>

#include "groups.h"

typedef struct Setting {
    int connections;
    bool is_full;
    double goal;    /* At the larger size. */
    double seconds; /* Times --seconds. */
} Setting;

static const Setting settings[] = {
    {1, true, 1.3, 2}, {2, true, 0, 2},  {8, true, 2.5, 12}, {32, true, 0, 2},
    {1, false, 0, 2},  {2, false, 0, 2}, {8, false, 0, 2},   {32, false, 0, 2},
};

static LoadResult
run_once(Bench *bench, Tpcc *tpcc, Load *load, const char *name)
{
    load->engine = tpcc->engine;
    load->path = tpcc->path;
    load->arg = tpcc;
    load->acknowledged_total = &tpcc->new_orders;
    if (load->style == LOAD_STYLES) load->style = load_best_style(load);
    LoadResult result = load_run(load);
    tpcc_check(bench, tpcc, name);
    return result;
}

static void
note(Row *row, const LoadResult result[2], int engines)
{
    static const char *const kinds[] = {"new", "pay", "status", "deliver", "stock"};
    size_t at = 0;
    for (int kind = 0; kind < TPCC_KINDS; kind++) {
        int bytes = snprintf(row->note + at, sizeof(row->note) - at, "%s%s %.1f/%.1f",
                             kind == 0 ? "p50/p99 ms " : ", ", kinds[kind], result[0].p50_ms[kind],
                             result[0].p99_ms[kind]);
        at += (size_t)bytes;
        if (engines == 2 && kind == 0) {
            at += (size_t)snprintf(row->note + at, sizeof(row->note) - at, " (peer %.1f/%.1f)",
                                   result[1].p50_ms[0], result[1].p99_ms[0]);
        }
        if (at >= sizeof(row->note)) break;
    }
}

static void
run_setting(Bench *bench, Tpcc tpcc[2], const Setting *setting)
{
    Row row = {.unit = "tpmC", .is_rate = true};
    Row stall = {.unit = "slowest_second", .is_rate = true, .goal = 1, .peer_name = "half_median"};
    Load load = {.mode = {.is_full = setting->is_full, .multi = setting->connections > 1},
                 .connections = setting->connections,
                 .start = tpcc_start,
                 .seconds = bench->options.seconds * setting->seconds,
                 .operate = tpcc_operate,
                 .end = tpcc_end};
    LoadStyle style = LOAD_STYLES;
    LoadResult last[2];
    memset(last, 0, sizeof(last));
    snprintf(row.name, sizeof(row.name), "tpcc.w%d_c%d_%s%s", tpcc[0].warehouses,
             setting->connections, setting->is_full ? "full" : "normal",
             bench->options.device[0] == 'd' ? "_disk" : "");
    if (!bench_wants(bench, row.name)) return;
    snprintf(stall.name, sizeof(stall.name), "%.60s_stall", row.name);
    if (bench->engines == 2) row.peer_name = bench->options.peer_name;
    if (tpcc[0].warehouses == bench->options.warehouses) row.goal = setting->goal;
    for (int round = 0; round < bench->options.rounds; round++) {
        double rate[2] = {0};
        load.seed = (uint64_t)round;
        for (int i = 0; i < bench->engines; i++) {
            int at = bench->engines == 2 ? (i + round) % 2 : 0;
            load.style = at == 0 ? LOAD_TIMEOUT : style;
            last[at] = run_once(bench, &tpcc[at], &load, row.name);
            if (at == 1) style = load.style;
            double seconds = (double)last[at].done / last[at].per_second;
            rate[at] = 60 * (double)last[at].acknowledged / seconds;
        }
        row_add(&row, rate[0], rate[1]);
        row_add(&stall, last[0].slowest_second, 0.5);
    }
    note(&row, last, bench->engines);
    row_show(bench, &row);
    if (load.seconds >= 4) row_show(bench, &stall);
}

static void
run_size(Bench *bench, int warehouses)
{
    Tpcc tpcc[2];
    int divisor = bench->options.divisor;
    bool is_disk = bench->options.device[0] == 'd';
    for (int i = 0; i < bench->engines; i++) {
        tpcc[i] = (Tpcc){.engine = &bench->engine[i],
                         .warehouses = warehouses,
                         .items = 100000 / divisor,
                         .customers = 3000 / divisor};
        snprintf(tpcc[i].path, sizeof(tpcc[i].path), "%s/tpcc-%s.db", bench->options.directory,
                 bench->engine[i].name);
        double from = now_s();
        tpcc_fill(&tpcc[i]);
        printf("# %s: %d warehouses in %.1f s\n", bench->engine[i].name, warehouses,
               now_s() - from);
        tpcc_check(bench, &tpcc[i], "the fill");
    }
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (settings[i].connections > bench->options.connections) continue;
        if (!is_disk || settings[i].goal > 0) run_setting(bench, tpcc, &settings[i]);
    }
    for (int i = 0; i < bench->engines; i++)
        db_remove(tpcc[i].path);
}

void
tpcc_group(Bench *bench)
{
    /* On a real disk only the smaller size, where the goals' settings are. */
    if (bench->options.warehouses > 1) run_size(bench, 1);
    if (bench->options.device[0] != 'd' || bench->options.warehouses == 1)
        run_size(bench, bench->options.warehouses);
}
