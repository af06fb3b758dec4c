/*
 * heap.c -- the heaps of simulated processes: every block in a list of its process, so that a
 * crash drops them all.
 */
#include <stdlib.h>

#include "rt/sim/sim_impl.h"

struct SimBlock {
    alignas(16) SimBlock *next;
    SimBlock *prev;
    RtSimProcess *process;
    void *pad; /* Of perturbed runs, to move addresses. */
};

static void *
heap_get(size_t bytes)
{
    World *world = rt__world;
    RtSimProcess *process = world->running != NULL ? world->running->process
                                                   : world->operator_process;
    if (rt__world_fault(NULL, RT_SIM_NO_MEMORY)) return NULL;
    SimBlock *block = malloc(sizeof(SimBlock) + bytes);
    if (block == NULL) return NULL;
    bool is_perturbed = world->options.is_perturbed;
    *block = (SimBlock){.process = process, .next = process->blocks};
    if (is_perturbed) block->pad = malloc(16 + (size_t)(process->block_count % 7) * 32);
    if (block->next != NULL) block->next->prev = block;
    process->blocks = block;
    process->block_count++;
    memset(block + 1, is_perturbed ? 0xa5 : 0, bytes);
    return block + 1;
}

static void
block_free(SimBlock *block)
{
    RtSimProcess *process = block->process;
    if (block->prev != NULL)
        block->prev->next = block->next;
    else
        process->blocks = block->next;
    if (block->next != NULL) block->next->prev = block->prev;
    process->block_count--;
    free(block->pad);
    free(block);
}

static void
heap_put(void *raw)
{
    block_free((SimBlock *)raw - 1);
}

const MemSource rt__sim_heap = {.get = heap_get, .put = heap_put};

void
rt__sim_heap_drop(RtSimProcess *process)
{
    u64 dropped = process->block_count;
    while (process->blocks != NULL)
        block_free(process->blocks);
    mem_note_dropped(dropped);
}
