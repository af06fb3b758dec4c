/*
 * thread.c -- threads of our own: started late, all signals blocked, joined by their owner.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "rt/process_impl.h"

#define THREAD_STACK_BYTES ((size_t)1 << 20)
#define THREAD_NAME_BYTES  16 /* The kernel's limit. */

struct RtThread {
    RtTask task;
    RtTaskFn fn;
    void *arg;
    RtEvent ended;
    pthread_t handle;
    char name[THREAD_NAME_BYTES];
};

static void *
thread_main(void *arg)
{
    RtThread *thread = arg;
    RtTask *before = rt__self();
    thread->task.stack_low = before->stack_low;
    rt__tls.current = &thread->task;
    thread->fn(thread->arg);
    rt__count(&thread->task.process->threads, (u64)-1);
    rt_event_set(&thread->ended);
    /* The joiner frees the task after pthread_join, so it may stay current to the end. */
    return NULL;
}

static Err
thread_create(RtThread *thread)
{
    pthread_attr_t attr;
    sigset_t all, former;
    if (pthread_attr_init(&attr) != 0) return ERR_NOMEM;
    pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
    sigfillset(&all);
    /* Faults of the thread itself stay with their handlers: blocked ones kill without a word. */
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    for (u32 i = 0; i < COUNT_OF(faults); i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    int error = pthread_create(&thread->handle, &attr, thread_main, thread);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    pthread_attr_destroy(&attr);
    if (error == 0) {
        pthread_setname_np(thread->handle, thread->name);
        return OK;
    }
    return error == ENOMEM ? ERR_NOMEM : ERR_LIMIT;
}

Err
rt_thread_start(RtProcess *process, RtTaskFn fn, void *arg, const char *name, RtThread **thread_out)
{
    *thread_out = NULL;
    if (rt_process_is_foreign(process)) return ERR_FOREIGN;
    RtThread *thread = MEM_NEW(RtThread);
    if (thread == NULL) return ERR_NOMEM;
    thread->fn = fn;
    thread->arg = arg;
    if (name != NULL) snprintf(thread->name, sizeof(thread->name), "%s", name);
    rt_task_init(&thread->task, process, thread->name);
    if (rt__count_in(&process->threads, &process->threads_max) != OK) {
        mem_free(thread);
        return ERR_LIMIT;
    }
    const RtHooks *hooks = rt__hooks(process);
    bool is_simulated = hooks != NULL && hooks->thread_start != NULL;
    Err err = is_simulated ? hooks->thread_start(&thread->task, fn, arg, &thread->ended)
                           : thread_create(thread);
    if (err != OK) {
        rt__count(&process->threads, (u64)-1);
        mem_free(thread);
        return err;
    }
    *thread_out = thread;
    return OK;
}

void
rt_thread_join(RtThread *thread)
{
    if (thread == NULL) return;
    rt_event_wait(&thread->ended);
    if (thread->task.process->world == NULL) pthread_join(thread->handle, NULL);
    mem_free(thread);
}

RtTask *
rt_thread_task(RtThread *thread)
{
    return &thread->task;
}
