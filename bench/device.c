/*
 * device.c -- the device probe.
 */
#include "device.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBES 41

double
device_probe_us(const char *directory)
{
    char path[4096], block[4096];
    double us[PROBES];
    memset(block, 'b', sizeof(block));
    snprintf(path, sizeof(path), "%s/probe", directory);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    for (int i = 0; i < PROBES; i++) {
        double start = now_s();
        if (pwrite(fd, block, sizeof(block), (off_t)i * 4096) != sizeof(block) ||
            fdatasync(fd) != 0) {
            perror(path);
            exit(1);
        }
        us[i] = (now_s() - start) * 1e6;
    }
    close(fd);
    unlink(path);
    sort_doubles(us, PROBES);
    return us[PROBES / 2];
}

void
device_tell(Bench *bench)
{
    const Options *options = &bench->options;
    double us = device_probe_us(options->directory);
    printf("# device %s: a write of 4 KiB with its sync takes %.0f us\n", options->device, us);
    if (options->device[0] == 'f' && (us < 240 || us > 1500)) {
        bench_fail(bench,
                   "a sync takes %.0f us with the shim: is bench/libfixed_sync.so preloaded?", us);
    }
    if (bench->json == NULL) return;
    fprintf(bench->json,
            "{\"name\":\"device.%s\",\"weft\":%.1f,\"peer\":null,\"peer_name\":null,"
            "\"ratio\":null,\"spread\":null,\"goal\":null,\"met\":null,\"unit\":\"us\","
            "\"device\":\"%s\"}\n",
            options->device, us, options->device);
}
