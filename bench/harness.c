/*
 * harness.c -- rows: medians of interleaved rounds, printed and appended to the JSON file.
 */
#include "harness.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RATIO_MAX 1e6

double
now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t
random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

int64_t
random_between(uint64_t *state, int64_t least, int64_t most)
{
    return least + (int64_t)((random_next(state) >> 8) % (uint64_t)(most - least + 1));
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void
sort_doubles(double *values, size_t count)
{
    qsort(values, count, sizeof(double), compare_doubles);
}

double
at_part(const double *sorted, size_t count, double part)
{
    if (count == 0) return 0;
    size_t at = (size_t)(part * (double)count);
    return sorted[at < count ? at : count - 1];
}

void
row_add(Row *row, double ours, double peer)
{
    if (row->rounds == ROUNDS_MAX) return;
    row->ours[row->rounds] = ours;
    row->peer[row->rounds] = peer;
    row->rounds++;
}

static void
row_keep(const Bench *bench, const Row *row, double ratio, double least, double most, bool is_met)
{
    size_t middle = (size_t)row->rounds / 2;
    if (bench->json == NULL) return;
    fprintf(bench->json, "{\"name\":\"%s\",\"weft\":%.4f,", row->name, row->ours[middle]);
    if (row->peer_name != NULL) {
        fprintf(bench->json,
                "\"peer\":%.4f,\"peer_name\":\"%s\",\"ratio\":%.3f,\"spread\":[%.3f,%.3f],",
                row->peer[middle], row->peer_name, ratio, least, most);
    } else {
        fprintf(bench->json,
                "\"peer\":null,\"peer_name\":null,\"ratio\":null,\"spread\":[%.3f,%.3f],",
                row->ours[0], row->ours[row->rounds - 1]);
    }
    if (row->goal > 0) {
        fprintf(bench->json, "\"goal\":%.2f,\"met\":%s,", row->goal, is_met ? "true" : "false");
    } else {
        fprintf(bench->json, "\"goal\":null,\"met\":null,");
    }
    fprintf(bench->json, "\"unit\":\"%s\",\"device\":\"%s\",\"note\":\"%s\",\"time\":%lld}\n",
            row->unit, bench->options.device, row->note, (long long)time(NULL));
    fflush(bench->json);
}

void
row_show(Bench *bench, Row *row)
{
    double ratio[ROUNDS_MAX];
    size_t rounds = (size_t)row->rounds, middle = rounds / 2;
    if (rounds == 0) return;
    for (size_t i = 0; i < rounds; i++) {
        double over = row->is_rate ? row->ours[i] : row->peer[i];
        double under = row->is_rate ? row->peer[i] : row->ours[i];
        /* A peer that got nothing done in time has no ratio; JSON knows no infinity. */
        ratio[i] = under > over / RATIO_MAX ? over / under : RATIO_MAX;
    }
    sort_doubles(ratio, rounds);
    sort_doubles(row->ours, rounds);
    sort_doubles(row->peer, rounds);
    bool is_met = row->goal <= 0 || (row->peer_name != NULL && ratio[middle] >= row->goal);
    printf("%-34s %12.3f", row->name, row->ours[middle]);
    if (row->peer_name != NULL) {
        printf(" %12.3f %8.2f x  (%.2f..%.2f) %s", row->peer[middle], ratio[middle], ratio[0],
               ratio[rounds - 1], row->unit);
    } else {
        printf(" %12s %8s    (%.3f..%.3f) %s", "-", "-", row->ours[0], row->ours[rounds - 1],
               row->unit);
    }
    if (row->goal > 0 && row->peer_name != NULL)
        printf("  goal %.2f %s", row->goal, is_met ? "met" : "-");
    printf("%s%s\n", row->note[0] != 0 ? "  " : "", row->note);
    fflush(stdout);
    bench->missed += !is_met;
    row_keep(bench, row, ratio[middle], ratio[0], ratio[rounds - 1], is_met);
}

void
bench_fail(Bench *bench, const char *format, ...)
{
    va_list list;
    printf("WRONG: ");
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
    fflush(stdout);
    bench->failed++;
}

bool
bench_wants(const Bench *bench, const char *name)
{
    return bench->options.part == NULL || strstr(name, bench->options.part) != NULL;
}
