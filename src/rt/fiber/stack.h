/*
 * stack.h -- private: stacks with guards, and changing from one to another.
 *
 * A stack is 256 KiB of reserved address space above a 68 KiB guard.  Pages come when they are
 * touched; a stack that grew beyond 32 KiB gives the rest back when it is returned.  Not
 * thread-safe: each loop has its own pool.
 */
#pragma once

#include "base/base.h"

#define RT_STACK_BYTES      ((size_t)256 << 10)
#define RT_STACK_GUARD      ((size_t)68 << 10) /* 64, and a page so that the sum is odd. */
#define RT_STACK_KEEP_BYTES ((size_t)32 << 10)

typedef struct RtStackSlab RtStackSlab;
typedef struct RtStacks {
    RtStackSlab *slabs;
    u32 made; /* For the colours of tops. */
} RtStacks;

typedef struct RtStack {
    char *low, *high; /* Usable bytes; high is 16-aligned. */
} RtStack;

/* ERR_NOMEM: no address space, or no more guards. */
MUST_CHECK Err rt__stack_new(RtStacks *stacks, RtStack *stack_out);
/* Return pages beyond RT_STACK_KEEP_BYTES to the system. */
void rt__stack_trim(RtStack *stack);
/* Bytes from the top down to the lowest page that is present. */
size_t rt__stack_used(const RtStack *stack);
/* Unmap everything. */
void rt__stacks_free(RtStacks *stacks);
/* True when `address` lies in a guard of this pool. */
bool rt__stacks_guard_hit(const RtStacks *stacks, const void *address);

/* A context: a stack pointer whose registers lie on its stack, and what sanitizers want to know. */
typedef struct RtContext {
    void *sp;
#ifdef WEFT_ASAN
    const void *low; /* Bounds of the stack. */
    size_t bytes;
    void *asan_fake;
#endif
#ifdef WEFT_TSAN
    void *tsan;
#endif
} RtContext;

/* A new context that will call fn(arg) on the stack; fn begins with rt__context_began(). */
void rt__context_make(RtContext *context, const RtStack *stack, void (*fn)(void *), void *arg);
/* The context of the calling thread, to switch away from. */
void rt__context_of_thread(RtContext *context);
void rt__context_began(RtContext *from);
void rt__context_switch(RtContext *from, RtContext *to);
/* The last switch away: `from` never runs again. */
void rt__context_leave(RtContext *from, RtContext *to);
void rt__context_free(RtContext *context);
