/* target.c -- see target.h. */
#include "tools/target.h"

#include <stdarg.h>
#include <stdio.h>

#include "rt/console.h"
#include "rt/host.h"
#include "rt/time.h"

#define BAR_EVERY_NS (100 * RT_NS_PER_MS)
#define BAR_MARKS    30u
#define BAR_NAME     24

/* ---- the file ---- */

static char *
folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return mem_strdup(".");
    return slash == path ? mem_strdup("/") : mem_strndup(path, (size_t)(slash - path));
}

typedef struct Sweep {
    RtDir *dir;
    const char *name; /* Without the folder. */
} Sweep;

/* The file itself, its log and its half-written image. */
static Err
sweep_one(void *arg, const char *name)
{
    const Sweep *sweep = arg;
    size_t bytes = strlen(sweep->name);
    if (strncmp(name, sweep->name, bytes) != 0 || (name[bytes] != 0 && name[bytes] != '-'))
        return OK;
    return rt_file_unlink(sweep->dir, name, NULL);
}

static Err
sweep(const char *part, ErrMsg *msg)
{
    const char *slash = strrchr(part, '/');
    Sweep job = {.name = slash != NULL ? slash + 1 : part};
    char *folder = folder_of(part);
    if (folder == NULL) return err_set(msg, ERR_NOMEM, NULL);
    Err err = rt_dir_open(folder, &job.dir, msg);
    mem_free(folder);
    if (err == OK) err = rt_dir_list(job.dir, sweep_one, &job, msg);
    rt_dir_close(job.dir);
    return err;
}

Err
target_begin(Target *target, const char *path, ErrMsg *msg)
{
    RtStat stat;
    *target = (Target){.path = path};
    Err err = rt_file_stat(NULL, path, &stat, msg);
    if (err == OK) return err_set(msg, ERR_EXISTS, "%s exists already", path);
    if (err != ERR_NOTFOUND) return err;
    err_clear(msg);
    size_t bytes = strlen(path) + sizeof("-part");
    target->part = mem_alloc(bytes);
    if (target->part == NULL) return err_set(msg, ERR_NOMEM, NULL);
    snprintf(target->part, bytes, "%s-part", path);
    return sweep(target->part, msg);
}

Err
target_keep(Target *target, ErrMsg *msg)
{
    RtDir *dir = NULL;
    RtStat stat;
    Err err = rt_file_stat(NULL, target->path, &stat, NULL);
    if (err == OK)
        return err_set(msg, ERR_EXISTS, "%s has been made by somebody else", target->path);
    err = rt_file_rename(NULL, target->part, target->path, msg);
    char *folder = err == OK ? folder_of(target->path) : NULL;
    if (err == OK && folder == NULL) err = err_set(msg, ERR_NOMEM, NULL);
    if (err == OK) err = rt_dir_open(folder, &dir, msg);
    if (err == OK) err = rt_dir_sync(dir, msg);
    rt_dir_close(dir);
    mem_free(folder);
    return err;
}

void
target_end(Target *target)
{
    if (target->part != NULL) {
        Err err = sweep(target->part, NULL);
        (void)err; /* What stays is swept by the next run. */
    }
    mem_free(target->part);
    target->part = NULL;
}

/* ---- the bar ---- */

Bar
bar_make(bool quiet)
{
    return (Bar){.on = !quiet && rt_std_is_tty(RT_STDERR)};
}

void
bar_show(Bar *bar, const char *what, u64 done, u64 total)
{
    char marks[BAR_MARKS + 1];
    u64 now_ns = bar->on ? rt_now_ns() : 0;
    if (!bar->on || now_ns < bar->next_ns) return;
    bar->next_ns = now_ns + BAR_EVERY_NS;
    bar->shown = true;
    done = MIN_OF(done, total);
    u32 filled = total == 0 ? 0 : (u32)((f64)done / (f64)total * BAR_MARKS);
    for (u32 i = 0; i < BAR_MARKS; i++)
        marks[i] = i < filled ? '#' : '.';
    marks[BAR_MARKS] = 0;
    Err err = rt_std_print(RT_STDERR, "\r[%s] %3u%% %-*.*s", marks,
                           total == 0 ? 0 : (u32)((f64)done / (f64)total * 100), BAR_NAME, BAR_NAME,
                           what);
    (void)err;
}

void
bar_clear(Bar *bar)
{
    if (!bar->shown) return;
    Err err = rt_std_print(RT_STDERR, "\r%*s\r", (int)(BAR_MARKS + 8 + BAR_NAME), "");
    (void)err;
    bar->shown = false;
}

/* ---- the user ---- */

/* In signal context. */
static void
on_interrupt(void *arg, RtSignal signal)
{
    (void)signal;
    rt_task_cancel(arg);
}

void
interrupt_on(void)
{
    rt_signal_on(RT_SIGINT, on_interrupt, rt_self());
}

void
interrupt_off(void)
{
    rt_signal_on(RT_SIGINT, NULL, NULL);
    rt_task_clear_cancel(rt_self());
}

int
complain(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    Err err = rt_std_print(RT_STDERR, "%s\n", text);
    (void)err;
    return 1;
}

void
summary(const char *to, const TransferCounts *counts, u64 started_ns)
{
    u64 ms = (rt_now_ns() - started_ns) / RT_NS_PER_MS;
    Err err = rt_std_print(RT_STDOUT,
                           "%s: %llu tables, %llu rows, %llu indexes, %llu views, %llu triggers "
                           "in %llu.%03llu s\n",
                           to, (unsigned long long)counts->tables, (unsigned long long)counts->rows,
                           (unsigned long long)counts->indexes, (unsigned long long)counts->views,
                           (unsigned long long)counts->triggers, (unsigned long long)(ms / 1000),
                           (unsigned long long)(ms % 1000));
    (void)err;
}
