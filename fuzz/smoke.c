/*
 * smoke.c -- a short run of a fuzz target without libFuzzer: seeds, and random changes of them.
 *
 *     TARGET_smoke ROUNDS SEED FILE...
 *
 * Each round takes a file, changes a few bytes, cuts or doubles a piece, or joins two files, and
 * hands it to the target.  The same arguments give the same inputs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

#define INPUT_MAX ((size_t)1 << 16)

typedef struct Input {
    u8 *p;
    size_t bytes;
} Input;

static Input
file_read(const char *path)
{
    Input input = {malloc(INPUT_MAX), 0};
    FILE *file = fopen(path, "rb");
    if (file == NULL || input.p == NULL) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    input.bytes = fread(input.p, 1, INPUT_MAX, file);
    fclose(file);
    return input;
}

static size_t
piece_double(Rng *rng, u8 *p, size_t bytes)
{
    size_t from = rng_below(rng, bytes), count = 1 + rng_below(rng, bytes - from);
    if (bytes + count > INPUT_MAX) return bytes;
    memmove(p + from + count, p + from, bytes - from);
    return bytes + count;
}

static size_t
mutate(Rng *rng, u8 *p, size_t bytes)
{
    for (u64 left = rng_below(rng, 5); left > 0 && bytes > 0; left--) {
        size_t at = rng_below(rng, bytes);
        switch (rng_below(rng, 6)) {
        case 0: p[at] = (u8)rng_next(rng); break;
        case 1: p[at] ^= (u8)(1 << rng_below(rng, 8)); break;
        case 2: p[at] = (u8) "\0\n\r{}[]\":,0\x7f\x80\xff"[rng_below(rng, 14)]; break;
        case 3: bytes = at; break;
        case 4: bytes = piece_double(rng, p, bytes); break;
        default:
            memmove(p + at, p + at + 1, bytes - at - 1);
            bytes--;
            break;
        }
    }
    return bytes;
}

int
main(int argc, char **argv)
{
    static u8 scratch[INPUT_MAX];
    Input *input = calloc((size_t)argc, sizeof(*input));
    u32 count = 0;
    Rng rng;
    if (argc < 4 || input == NULL) return 2;
    u64 rounds = (u64)atoll(argv[1]);
    rng_seed(&rng, (u64)atoll(argv[2]));
    for (int i = 3; i < argc; i++)
        input[count++] = file_read(argv[i]);
    for (u32 i = 0; i < count; i++)
        (void)LLVMFuzzerTestOneInput(input[i].p, input[i].bytes);
    for (u64 round = 0; round < rounds; round++) {
        const Input *from = &input[rng_below(&rng, count)];
        memcpy(scratch, from->p, from->bytes);
        size_t bytes = mutate(&rng, scratch, from->bytes);
        u8 *exact = malloc(bytes + (bytes == 0)); /* ASan sees the end. */
        if (exact == NULL) return 2;
        memcpy(exact, scratch, bytes);
        (void)LLVMFuzzerTestOneInput(exact, bytes);
        free(exact);
    }
    for (u32 i = 0; i < count; i++)
        free(input[i].p);
    free(input);
    printf("1..1\nok 1 - %llu inputs\n", (unsigned long long)(rounds + count));
    return 0;
}
