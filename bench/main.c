/*
 * main.c -- the same workloads on two engines, in turn, and the ratio of their times.
 *
 * Every round runs each workload on one engine and then on the other, so that a machine that slows
 * down slows both; the figure is the median of the rounds' ratios.  Engines are driven through the
 * sqlite3 C API of libraries loaded at run time.  Without a peer Weft runs alone: a test.
 */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "groups.h"

static const struct {
    const char *name;
    void (*run)(Bench *bench);
} groups[] = {
    {"shape", shape_group},   {"habit", habit_group}, {"analytic", analytic_group},
    {"ledger", ledger_group}, {"tpcc", tpcc_group},   {"queue", queue_group},
};

static const char usage[] =
    "usage: bench --weft LIBRARY [--peer LIBRARY] [--name PEER] [--group GROUP] [--part NAME]\n"
    "             [--rounds 1..15] [--rows N>=10000] [--json FILE] [--dir DIRECTORY]\n"
    "             [--device memory|disk|fixed] [--seconds S] [--connections MOST]\n"
    "             [--accounts N] [--warehouses N] [--tpch THOUSANDTHS] [--duckdb LIBRARY]\n"
    "             [--small 1]\n";

/* Sizes of a test. */
static void
make_small(Options *options)
{
    options->rows = 10000;
    options->accounts = 1000;
    options->warehouses = 1;
    options->tpch_permille = 1;
    options->seconds = 0.05;
    options->divisor = 20;
}

static bool
read_number(Options *options, const char *name, const char *value)
{
    if (strcmp(name, "--small") == 0)
        make_small(options);
    else if (strcmp(name, "--rounds") == 0)
        options->rounds = atoi(value);
    else if (strcmp(name, "--rows") == 0)
        options->rows = atoll(value);
    else if (strcmp(name, "--accounts") == 0)
        options->accounts = atoll(value);
    else if (strcmp(name, "--warehouses") == 0)
        options->warehouses = atoi(value);
    else if (strcmp(name, "--tpch") == 0)
        options->tpch_permille = atoi(value);
    else if (strcmp(name, "--seconds") == 0)
        options->seconds = atof(value);
    else if (strcmp(name, "--connections") == 0)
        options->connections = atoi(value);
    else
        return false;
    return true;
}

static bool
read_text(Options *options, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **slot;
    } texts[] = {
        {"--weft", &options->weft},      {"--peer", &options->peer},
        {"--name", &options->peer_name}, {"--group", &options->group},
        {"--part", &options->part},      {"--json", &options->json},
        {"--dir", &options->directory},  {"--device", &options->device},
        {"--duckdb", &options->duckdb},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(name, texts[i].name) != 0) continue;
        *texts[i].slot = value;
        return true;
    }
    return false;
}

static Options
read_options(int argc, char **argv)
{
    Options options = {.peer_name = "sqlite",
                       .device = "memory",
                       .directory = "/dev/shm",
                       .rounds = 3,
                       .rows = 1000000,
                       .accounts = 100000,
                       .warehouses = 2,
                       .tpch_permille = 100,
                       .seconds = 1,
                       .divisor = 1,
                       .connections = 64};
    bool is_good = true;
    for (int i = 1; i < argc; i += 2) {
        is_good = is_good && i + 1 < argc &&
                  (read_text(&options, argv[i], argv[i + 1]) ||
                   read_number(&options, argv[i], argv[i + 1]));
    }
    if (!is_good || options.weft == NULL || options.rounds < 1 || options.rounds > ROUNDS_MAX ||
        options.rows < 10000 || options.accounts < 1000 || options.warehouses < 1 ||
        options.connections < 1 || options.tpch_permille < 1) {
        fputs(usage, stderr);
        exit(2);
    }
    return options;
}

int
main(int argc, char **argv)
{
    Bench bench = {.options = read_options(argc, argv), .engines = 1};
    const Options *options = &bench.options;
    if (!engine_load(&bench.engine[0], "weft", options->weft)) return 1;
    if (options->peer != NULL) {
        if (!engine_load(&bench.engine[1], options->peer_name, options->peer)) return 1;
        bench.engines = 2;
    }
    if (options->json != NULL) bench.json = fopen(options->json, "a");
    bool found = false;
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (options->group != NULL && strcmp(groups[i].name, options->group) != 0) continue;
        found = true;
        printf("# %s: weft and %s %s, device %s\n", groups[i].name,
               bench.engines == 2 ? options->peer_name : "no peer",
               bench.engines == 2 ? bench.engine[1].libversion() : "", options->device);
        bool is_durable = strcmp(options->device, "memory") != 0;
        if (is_durable) device_tell(&bench);
        groups[i].run(&bench);
        if (is_durable) device_tell(&bench);
    }
    if (bench.json != NULL) fclose(bench.json);
    if (!found) fprintf(stderr, "bench: no group %s\n", options->group);
    if (bench.failed > 0) printf("%d wrong\n", bench.failed);
    return bench.failed > 0 || !found;
}
