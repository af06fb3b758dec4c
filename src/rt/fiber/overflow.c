/*
 * overflow.c -- a stack overflow tells which fiber it was, then ends the program as it would have.
 *
 * The guard below a stack makes SIGSEGV; there is no stack left then, so the handler runs on one
 * of its own for each loop.  It writes one line, puts back the handler that was there before (a
 * sanitizer's, or none) and returns: the same access faults again and meets that.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "rt/fiber/loop_impl.h"

#define HANDLER_STACK_BYTES ((size_t)64 << 10)

static struct sigaction former_segv, former_bus;
static RtMutex users_lock; /* Protects `users` and the handlers. */
static u32 users;

typedef struct HandlerStack {
    stack_t former;
    char memory[HANDLER_STACK_BYTES];
} HandlerStack;

static void
place_show(char *to, size_t bytes, uintptr_t address)
{
    Dl_info info;
    if (dladdr((void *)address, &info) != 0 && info.dli_sname != NULL)
        snprintf(to, bytes, "%s", info.dli_sname);
    else if (info.dli_fname != NULL)
        snprintf(to, bytes, "%s+0x%llx", info.dli_fname,
                 (unsigned long long)(address - (uintptr_t)info.dli_fbase));
    else
        snprintf(to, bytes, "%p", (void *)address);
}

static uintptr_t
program_counter(const void *context)
{
    const ucontext_t *where = context;
#if defined(__x86_64__)
    return (uintptr_t)where->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)where->uc_mcontext.pc;
#endif
}

static void
on_fault(int number, siginfo_t *info, void *context)
{
    RtTask *task = rt__tls.current;
    RtLoop *loop = task != NULL ? task->loop : NULL;
    const RtFiber *fiber = loop != NULL ? loop->running : NULL;
    if (fiber != NULL && rt__stacks_guard_hit(&loop->stacks, info->si_addr)) {
        char text[1024], began[256], now[256];
        place_show(began, sizeof(began), (uintptr_t)fiber->fn);
        place_show(now, sizeof(now), program_counter(context));
        const RtTask *own = &fiber->task;
        int bytes = snprintf(text, sizeof(text),
                             "weft: stack overflow in fiber \"%s\" (%llu) of loop %u, begun in %s, "
                             "at %s\n",
                             own->name != NULL ? own->name : "-", (unsigned long long)own->id,
                             loop->index, began, now);
        ssize_t done = write(STDERR_FILENO, text, MIN_OF((size_t)bytes, sizeof(text) - 1));
        (void)done;
    }
    sigaction(number, number == SIGBUS ? &former_bus : &former_segv, NULL);
}

void
rt__overflow_enter(void)
{
    rt_mutex_lock(&users_lock);
    if (users++ == 0) {
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigemptyset(&action.sa_mask);
        sigaction(SIGSEGV, &action, &former_segv);
        sigaction(SIGBUS, &action, &former_bus);
    }
    rt_mutex_unlock(&users_lock);
}

void
rt__overflow_leave(void)
{
    rt_mutex_lock(&users_lock);
    if (--users == 0) {
        sigaction(SIGSEGV, &former_segv, NULL);
        sigaction(SIGBUS, &former_bus, NULL);
    }
    rt_mutex_unlock(&users_lock);
}

void *
rt__overflow_stack_use(void)
{
    HandlerStack *stack = mem_alloc(sizeof(HandlerStack));
    if (stack == NULL) return NULL;
    stack_t use = {.ss_sp = stack->memory, .ss_size = sizeof(stack->memory)};
    if (sigaltstack(&use, &stack->former) == 0) return stack;
    mem_free(stack);
    return NULL;
}

void
rt__overflow_stack_end(void *stack)
{
    if (stack == NULL) return;
    sigaltstack(&((HandlerStack *)stack)->former, NULL);
    mem_free(stack);
}
