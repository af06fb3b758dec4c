/*
 * stack.c -- slabs of stacks with guards; switching with the sanitizers told.
 */
#include "rt/fiber/stack.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef WEFT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#ifdef WEFT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif
#ifndef VALGRIND_STACK_REGISTER
#define VALGRIND_STACK_REGISTER(low, high) ((void)0)
#endif

#define SLAB_STACKS  64
#define STRIDE_BYTES (RT_STACK_BYTES + RT_STACK_GUARD)
#define SLAB_BYTES   (SLAB_STACKS * STRIDE_BYTES)
/* The used ends of all stacks must not meet in a few sets of the caches: tops differ within their
   page, and the stride is an odd number of pages. */
#define COLOURS 48
STATIC_ASSERT(STRIDE_BYTES / 4096 % 2 == 1);

/* Linux 6.13; guards without a mapping of their own. */
#define ADVICE_GUARD_INSTALL 102

struct RtStackSlab {
    RtStackSlab *next;
    char *memory;
    u32 used;
};

void rt__switch(void **save_sp, void *to_sp);
void rt__switch_entry(void);

static bool
guard_install(char *low)
{
#ifndef WEFT_ASAN /* The leak checker reads what the map calls readable: there only mprotect. */
    if (madvise(low, RT_STACK_GUARD, ADVICE_GUARD_INSTALL) == 0) return true;
#endif
    return mprotect(low, RT_STACK_GUARD, PROT_NONE) == 0;
}

static RtStackSlab *
slab_new(RtStacks *stacks)
{
    RtStackSlab *slab = MEM_NEW(RtStackSlab);
    if (slab == NULL) return NULL;
    void *memory = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) {
        mem_free(slab);
        return NULL;
    }
    /* A huge page would make every first touch cost 2 MiB. */
    madvise(memory, SLAB_BYTES, MADV_NOHUGEPAGE);
    madvise(memory, SLAB_BYTES, MADV_DONTFORK);
    slab->memory = memory;
    slab->next = stacks->slabs;
    stacks->slabs = slab;
    return slab;
}

Err
rt__stack_new(RtStacks *stacks, RtStack *stack_out)
{
    RtStackSlab *slab = stacks->slabs;
    if (slab == NULL || slab->used == SLAB_STACKS) slab = slab_new(stacks);
    if (slab == NULL) return ERR_NOMEM;
    char *guard = slab->memory + slab->used * STRIDE_BYTES;
    if (!guard_install(guard)) return ERR_NOMEM;
    slab->used++;
    stack_out->low = guard + RT_STACK_GUARD;
    stack_out->high = stack_out->low + RT_STACK_BYTES - (stacks->made++ % COLOURS) * 64;
    VALGRIND_STACK_REGISTER(stack_out->low, stack_out->high);
#ifdef WEFT_ASAN
    __lsan_register_root_region(stack_out->low, RT_STACK_BYTES);
#endif
    return OK;
}

void
rt__stack_trim(RtStack *stack)
{
    size_t keep = RT_STACK_KEEP_BYTES;
    madvise(stack->low, RT_STACK_BYTES - keep, MADV_DONTNEED);
}

size_t
rt__stack_used(const RtStack *stack)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char present[RT_STACK_BYTES / 4096];
    if (mincore(stack->low, RT_STACK_BYTES, present) != 0) return 0;
    for (size_t i = 0; i < RT_STACK_BYTES / page; i++) {
        if (present[i] & 1) return RT_STACK_BYTES - i * page;
    }
    return 0;
}

void
rt__stacks_free(RtStacks *stacks)
{
    RtStackSlab *next;
    for (RtStackSlab *slab = stacks->slabs; slab != NULL; slab = next) {
        next = slab->next;
#ifdef WEFT_ASAN
        for (u32 i = 0; i < slab->used; i++) {
            char *low = slab->memory + i * STRIDE_BYTES + RT_STACK_GUARD;
            __lsan_unregister_root_region(low, RT_STACK_BYTES);
            ASAN_UNPOISON_MEMORY_REGION(low, RT_STACK_BYTES);
        }
#endif
        munmap(slab->memory, SLAB_BYTES);
        mem_free(slab);
    }
    *stacks = (RtStacks){0};
}

bool
rt__stacks_guard_hit(const RtStacks *stacks, const void *address)
{
    for (const RtStackSlab *slab = stacks->slabs; slab != NULL; slab = slab->next) {
        size_t at = (size_t)((const char *)address - slab->memory);
        if (at < SLAB_BYTES) return at % STRIDE_BYTES < RT_STACK_GUARD;
    }
    return false;
}

void
rt__context_make(RtContext *context, const RtStack *stack, void (*fn)(void *), void *arg)
{
    *context = (RtContext){0};
#ifdef WEFT_ASAN
    context->low = stack->low;
    context->bytes = (size_t)(stack->high - stack->low);
#endif
    ASSERT(((uintptr_t)stack->high & 15) == 0);
    void **sp = (void **)(void *)stack->high;
#if defined(__x86_64__)
    /* r15 r14 r13 r12 rbx rbp, the entry, then zeros: the frame is 16-aligned. */
    sp -= 9;
    memset(sp, 0, 9 * sizeof(*sp));
    sp[2] = (void *)(uintptr_t)fn;
    sp[3] = arg;
    sp[6] = (void *)(uintptr_t)rt__switch_entry;
#elif defined(__aarch64__)
    sp -= 20;
    memset(sp, 0, 20 * sizeof(*sp));
    sp[0] = arg;
    sp[1] = (void *)(uintptr_t)fn;
    sp[11] = (void *)(uintptr_t)rt__switch_entry;
#else
#error "no fiber switch for this machine"
#endif
    context->sp = sp;
#ifdef WEFT_TSAN
    context->tsan = __tsan_create_fiber(0);
#endif
}

void
rt__context_of_thread(RtContext *context)
{
    *context = (RtContext){0};
#ifdef WEFT_TSAN
    context->tsan = __tsan_get_current_fiber();
#endif
}

/* The bounds of the thread's own stack are learnt when it is first left. */
void
rt__context_began(RtContext *from)
{
#ifdef WEFT_ASAN
    __sanitizer_finish_switch_fiber(NULL, &from->low, &from->bytes);
#else
    (void)from;
#endif
}

void
rt__context_switch(RtContext *from, RtContext *to)
{
#ifdef WEFT_ASAN
    __sanitizer_start_switch_fiber(&from->asan_fake, to->low, to->bytes);
#endif
#ifdef WEFT_TSAN
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
    rt__switch(&from->sp, to->sp);
#ifdef WEFT_ASAN
    __sanitizer_finish_switch_fiber(from->asan_fake, NULL, NULL);
#endif
}

void
rt__context_leave(RtContext *from, RtContext *to)
{
#ifdef WEFT_ASAN
    __sanitizer_start_switch_fiber(NULL, to->low, to->bytes);
#endif
#ifdef WEFT_TSAN
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
    rt__switch(&from->sp, to->sp);
    UNREACHABLE();
}

void
rt__context_free(RtContext *context)
{
#ifdef WEFT_TSAN
    if (context->tsan != NULL) __tsan_destroy_fiber(context->tsan);
#endif
    *context = (RtContext){0};
}
