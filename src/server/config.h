/*
 * config.h -- options of weftd: from the command line, or the same words from a file.
 */
#pragma once

#include "server/server.h"

#define CONFIG_TEXT_MAX ((size_t)16 << 10)

typedef struct Config {
    ServerOptions options;
    const char *token_file, *jwt_key_file, *config_file;
    char *token, *jwt_key; /* Read from files. */
    u64 drain_ns;
    bool threads, verbose, log_json, done;
    u32 string_count;
    char *string[64]; /* Owned by the config. */
} Config;

/* 0: go on; else the status to end with.  Complaints go to standard error.  `done`: asked for help
   or version. */
int config_read(Config *config, int argc, char **argv);
void config_free(Config *config);
int config_complain(const char *text, const char *detail);
